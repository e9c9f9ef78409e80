"""A chain's step: from the arrivals and what its nodes carry to their instances, in one scan."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tidegate.engine.core.values import FOREVER, Int64
from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.graph.operators.minus import Minus, remembered
from tidegate.engine.detect.events.graph.operators.sequence import Sequence
from tidegate.engine.detect.events.kernels.columns import NEVER
from tidegate.engine.detect.events.occurrences.instances import (
    NONE,
    Carry,
    Flow,
    Instances,
    Int32,
    Moment,
    Pending,
    no_pending,
    pending_of,
)
from tidegate.engine.detect.events.step.chains.plan import Chain, Layout
from tidegate.engine.detect.events.step.chains.scan import (
    AHEAD,
    CACHED,
    Found,
    Program,
    by_last_row,
    scan,
    scan_pairs,
)
from tidegate.engine.detect.events.step.frame import Frame

Steps = dict[str, tuple[Flow, Carry]]
"""What each node of a chain gives, and what it carries on, by digest."""


def step(chain: Chain, frame: Frame, moment: Moment) -> Steps:
    """One step of a chain: the instances of its nodes that somebody else reads, and what each node
    carries on."""
    layout = chain.layout
    numbers = np.full(moment.keys * layout.size + 2, NEVER)  # the last two are of no key
    state = numbers[:-2].reshape(moment.keys, layout.size)
    before = {node.digest: frame.carry(node) for node in chain.nodes}
    for node in chain.nodes:
        _read(node, before[node.digest], layout, state)
    instances = _scanned(chain, layout, numbers, frame)
    steps: Steps = {}
    pending = no_pending()
    for node in chain.nodes:
        carry = _carried(node, chain, state, before[node.digest], pending, frame, moment)
        if isinstance(node.shape, Sequence):
            pending = pending_of(carry, [Flow(NONE, pending)])
        flow = Flow(instances.get(node.digest, NONE), pending)
        steps[node.digest] = node.forgetting(flow, carry, moment.watermark)
        pending = steps[node.digest][0].pending
    return steps


def _read(node: Node, carry: Carry, layout: Layout, state: Int64) -> None:
    """Write what a node carries to the records of its keys."""
    if isinstance(node.shape, Sequence):
        stage = layout.carried[node.digest]
        at, part = layout.at[stage], carry[0]
        state[part.key, at] = part.start
        state[part.key, at + 1 : at + stage + 2] = part.row.reshape(-1, stage + 1)
    elif isinstance(node.shape, Minus):
        at, part = layout.at[layout.carried[node.digest]], carry[0]
        state[part.key, at] = part.start


def _carried(
    node: Node,
    chain: Chain,
    state: Int64,
    before: Carry,
    pending: Pending,
    frame: Frame,
    moment: Moment,
) -> Carry:
    """What a node carries on, `before` this step and after; `pending` are the pending starts of the
    node that it reads. Nothing outlives a history that has ended."""
    if moment.watermark == FOREVER:
        return (NONE,) * node.shape.slots
    if not before:
        return ()
    place = chain.layout.carried[node.digest]
    at = chain.layout.at[place]
    if isinstance(node.shape, Minus):
        return (remembered(state[:, at], pending),)
    matches, oldest = state[:, at : at + place + 2], node.oldest(moment.watermark)
    return (_latest(chain, matches, before[0], oldest, frame),)


def _latest(
    chain: Chain, matches: Int64, before: Instances, oldest: int, frame: Frame
) -> Instances:
    """The latest match of each key, if it starts at `oldest` or later, in order of end;
    matches[key] is its start and its rows.

    Those carried before are in order, as are arrivals: nothing is compared.
    """
    first = frame.occurrences.first
    arrived = by_last_row(matches, first, len(frame.timeline), oldest)
    still = before.key[matches[before.key, -1] == before.row[before.offsets[1:] - 1]]
    key = np.concatenate([still[matches[still, 0] >= oldest], arrived])
    rows = matches[key, 1:]
    end = frame.occurrences.instants(rows[:, -1])
    return _matches(chain, key, matches[key, 0], end, rows)


def _scanned(chain: Chain, layout: Layout, numbers: Int64, frame: Frame) -> dict[str, Instances]:
    """The instances of the nodes that are shown, by digest. `numbers`, the state, goes along."""
    line, arrivals = frame.timeline, frame.arrivals_of(chain.leaves)
    shown = [stage for stage in chain.stages if stage.top.digest in chain.shown]
    room = sum(line.counts.get(stage.leaf.roles[0], 0) for stage in shown) + 1
    found = Found(
        np.empty(room, dtype=np.int16),
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty((room, len(chain.stages)), dtype=np.int64),
    )
    ahead = AHEAD if len(numbers) > CACHED else len(line)
    program = _program(chain, layout, line.events, len(numbers) - 2)
    arriving = *arrivals.columns, line.simultaneous_max
    pairs = len(chain.stages) == 2 and len(chain.leaves) == 2
    count = int((scan_pairs if pairs else scan)(arriving, program, numbers, ahead, found))
    return {
        stage.top.digest: _of_stage(chain, p, found, count, alone=len(shown) == 1)
        for p, stage in enumerate(chain.stages)
        if stage in shown
    }


def _program(chain: Chain, layout: Layout, events: Iterable[str], beyond: int) -> Program:
    """A chain as the scan reads it, over a timeline of these event types; `beyond` all records
    there is room for what is of no use."""
    known = {event: place for place, event in enumerate(layout.events)}
    nowhere = len(layout.events)
    last = len(chain.stages) - 1
    bounds, guards = [0], list[int]()
    for stage in chain.stages:
        guards += [layout.at[known[guard.roles[0]]] for guard in stage.guards]
        bounds.append(len(guards))
    # nobody reads an unguarded first stage: it is an event type, which has a node of its own
    begins = last > 0 and not chain.stages[0].guards
    noted = [begins] + [False] * last + [True] * (nowhere - last)
    return Program(
        np.array([*(known.get(event, nowhere) for event in events), nowhere], np.uint64),
        np.uint64(last),
        np.array([*layout.at, beyond], np.uint64),
        np.array([layout.size] * nowhere + [0]),
        np.array(noted),
        np.array([stage.span for stage in chain.stages]),
        np.array([stage.top.digest in chain.shown for stage in chain.stages]),
        np.array(bounds, np.uint64),
        np.array(guards, np.uint64),
    )


def _of_stage(chain: Chain, stage: int, found: Found, count: int, *, alone: bool) -> Instances:
    """The matches found that end with a stage; `alone`: all do."""
    mine = slice(count) if alone else np.flatnonzero(found.stage[:count] == stage)
    row = found.row[mine][:, : stage + 1]
    return _matches(chain, found.key[mine], found.start[mine], found.end[mine], row)


def _matches(chain: Chain, key: Int32, start: Int64, end: Int64, row: Int64) -> Instances:
    """Matches of the first stages as instances: row[n, stage]."""
    count, width = row.shape
    roles = np.array([stage.role for stage in chain.stages[:width]], dtype=np.int16)
    offsets = np.arange(count + 1, dtype=np.int64) * width
    return Instances(key, start, end, offsets, row.reshape(-1), np.tile(roles, count))
