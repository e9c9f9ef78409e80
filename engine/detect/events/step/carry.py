"""The end of a step: carried instances and the occurrences that they refer to, in hand and as
tables. Only what has changed is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import FOREVER, Carried, Int64
from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.graph.timers import Timed
from tidegate.engine.detect.events.occurrences.instances import (
    EVERY_KEY,
    Bools,
    Carry,
    Instances,
    Int32,
    concat,
)
from tidegate.engine.detect.events.occurrences.keys import NO_KEYS, Keys
from tidegate.engine.detect.events.state.decoded import UNKNOWN, Decoded
from tidegate.engine.detect.events.state.partitions import (
    EVERY,
    by_partition,
    count_of,
    dropped_at,
    marked,
    part_name,
    partitions,
    place,
    replaced,
    sliced,
)
from tidegate.engine.detect.events.state.tables import read_spans, write_instances, write_keys
from tidegate.engine.detect.events.step.frame import Frame
from tidegate.engine.detect.events.step.kept import Kept

_SPARE = 1_024
"""So many keys that nothing is carried of stay in hand, beside three times as many as are in use:
they are likely to come back."""


class _InUse(NamedTuple):
    """What nodes and censuses carry on; and by domain the keys that it is of, and the partition of
    each key code."""

    carry: Mapping[str, Carry]
    known: Mapping[str, Int32]
    keys: Mapping[int | None, Keys]
    homes: Mapping[int | None, Int64]


def carry_on(
    frame: Frame,
    carry: Mapping[str, Carry],
    stored: Carried,
    count: int,
    timed: Collection[str],
    behind: Mapping[str, int],
    *,
    of_some: bool = False,
) -> Carried:
    """What to carry on, in `count` partitions. The nodes of the step carry on `carry`, the others
    what they did. `timed`: the nodes with timers. `behind`: of the nodes that run behind, how far.
    `of_some`: keys that are not in hand may need what is of every key; it stays."""
    graph, decoded = frame.graph, frame.decoded
    anew = bool(stored.tables) and count != count_of(stored.tables.values())
    before = {digest: frame.stored(graph.nodes[digest]) or () for digest in decoded.carry}
    if of_some:
        carry = {d: _with_every(frame, d, before.get(d, ()), slots) for d, slots in carry.items()}
    after = {d: slots for d, slots in {**before, **carry}.items() if any(map(len, slots))}
    known = {name: frame.known(name) for name in {**decoded.known, **frame.censuses}}
    nodes = [d for d in {**before, **after} if anew or not _same(before.get(d), after.get(d))]
    names = [name for name, (code, new) in known.items() if len(code if anew else new)]
    if not (nodes or names or decoded.foreign):
        return Carried(stored.tables, decoded=decoded)
    used = _in_use(frame, after, {name: code for name, (code, _) in known.items()}, count)
    touched = None if anew or decoded.foreign else _events_of(nodes, frame)
    kept = Kept(frame, used.carry, used.homes, count, touched)
    written = kept.tables()
    for digest in used.carry.keys() & nodes:
        late = behind.get(digest, 0)
        written |= _node_parts(graph.nodes[digest], used, kept, frame, late, timed=digest in timed)
    for name in names:
        domain = graph.census_domain(name)
        order, spans = by_partition(used.homes[domain][used.known[name]], count)
        table = write_keys(used.keys[domain].values(used.known[name][order]))
        parts = sliced(marked(table, count), spans)
        written |= {part_name(name, partition): part for partition, part in parts.items()}
    whole = {*("node:" + d for d in nodes), *names, *("occ:" + e for e in kept.looked_at)}
    read = {n for n in stored.tables if n in decoded.foreign or place(n)[0] in whole}
    left, changed = replaced(stored.tables, read, written)
    carry = {
        digest: tuple(replace(part, row=kept.again[part.row]) for part in slots)
        for digest, slots in used.carry.items()
    }
    in_hand = Decoded(graph, kept.events, carry, used.known, used.keys, used.homes, count)
    return Carried(left, changed, in_hand)


def _in_use(
    frame: Frame, carry: Mapping[str, Carry], known: Mapping[str, Int32], count: int
) -> _InUse:
    """What is carried on, by keys in hand that are in use, in `count` partitions. A key that was
    hashed is not hashed anew."""
    graph, decoded = frame.graph, frame.decoded
    every = {**decoded.keys, **frame.codes.keys}
    domains: dict[str, int | None] = {d: graph.domain(graph.nodes[d]) for d in carry}
    domains |= {name: graph.census_domain(name) for name in known}
    marks = {d: np.zeros(every.get(d, NO_KEYS).count + 2, np.bool_) for d in domains.values()}
    for digest, slots in carry.items():
        for part in slots:
            marks[domains[digest]][part.key] = True
    for name, code in known.items():
        marks[domains[name]][code] = True
    keys, homes, again = {}, {}, dict[int | None, Int32]()
    for domain, mark in marks.items():
        mark[[0, -1]] = False
        keys[domain], home = every.get(domain, NO_KEYS), np.full(len(mark), UNKNOWN)
        if decoded.count == count and domain in decoded.homes:
            home[frame.codes.again.get(domain, slice(None))] = decoded.homes[domain]
        if len(mark) > 4 * np.count_nonzero(mark) + _SPARE:
            left = np.flatnonzero(mark).astype(np.int32)
            again[domain] = np.cumsum(mark, dtype=np.int32)
            again[domain][-1] = len(left) + 1
            keys[domain] = Keys(tuple(keys[domain].values(left)), len(left))
            still = np.concatenate([[0], left, [-1]])
            home, mark = home[still], mark[still]
        homes[domain] = _homed(keys[domain], home, mark, count)
    recoded = {
        digest: tuple(replace(part, key=again[domains[digest]][part.key]) for part in slots)
        for digest, slots in carry.items()
        if domains[digest] in again
    }
    census = {n: again[domains[n]][code] for n, code in known.items() if domains[n] in again}
    return _InUse({**carry, **recoded}, {**known, **census}, keys, homes)


def _homed(keys: Keys, home: Int64, used: Bools, count: int) -> Int64:
    """The partition of each key code, at least of those that are used; known ones are in `home`."""
    if count == 1:
        return np.zeros_like(home)
    home[[0, -1]] = EVERY
    new = np.flatnonzero(used & (home == UNKNOWN)).astype(np.int32)
    if len(new):
        home[new] = partitions(keys.values(new), count)
    return home


def _with_every(frame: Frame, digest: str, before: Carry, after: Carry) -> Carry:
    """What a node carries on, and of every key all that it did. None of that is new: a step of some
    keys has no broadcasts. A node without keys knows itself what it needs; rules that use others by
    other keys are not stepped then.

    Example: `(a ; b) without t` per k, where t is a broadcast. A t at 5 is kept while some key has
    an a at 3 that waits for its b. A step of other keys does not see that a.
    """
    if not before or frame.graph.domain(frame.graph.nodes[digest]) is None:
        return after
    kept = []
    for old, new in zip(before, after, strict=True):
        shared, own = old.key == EVERY_KEY, new.key != EVERY_KEY
        dropped = np.count_nonzero(shared) + np.count_nonzero(own) > len(new)
        kept.append(concat([old.where(shared), new.where(own)]) if dropped else new)
    return tuple(kept)


def _same(one: Carry | None, other: Carry | None) -> bool:
    if one is other:
        return True
    if one is None or other is None or len(one) != len(other):
        return False
    names = [column.name for column in fields(Instances)]
    pairs = zip(one, other, strict=True)
    return all(np.array_equal(getattr(a, n), getattr(b, n)) for a, b in pairs for n in names)


def _events_of(nodes: Sequence[str], frame: Frame) -> frozenset[str] | None:
    """The event types that some nodes refer to; None: all, as a rule's detections refer to
    others."""
    known = frame.decoded.events.values()
    if frame.occurrences.parts or any(some.parts is not None for some in known):
        return None
    return frozenset(role for digest in nodes for role in frame.graph.nodes[digest].roles)


def _node_parts(
    node: Node, used: _InUse, kept: Kept, frame: Frame, behind: int, *, timed: bool
) -> dict[str, pa.Table]:
    """The tables of what a node carries. `behind`: how far it runs behind."""
    carry, domain = used.carry[node.digest], frame.graph.domain(node)
    whole, keys = concat(carry), used.keys[domain]
    slot = np.repeat(np.arange(len(carry), dtype=np.int16), [len(part) for part in carry])
    order, spans = by_partition(used.homes[domain][whole.key], kept.count)
    if len(spans) > 1:
        whole, slot = whole.take(order), slot[order]
    every = (whole.key == EVERY_KEY) | (whole.key > keys.count)
    table = write_instances(slot, every, keys.values(whole.key), whole, kept.time, kept.number)
    found = {}
    for partition, part in sliced(table, spans).items():
        due, timers = FOREVER, 0
        if timed:
            instants = cast(Timed, node.shape).due(read_spans(node, part))
            due, timers = int(instants.min(initial=FOREVER)) + behind, len(instants)
        old = dropped_at(whole.start[spans[partition]], node.horizon_micros) + behind
        name = part_name("node:" + node.digest, partition)
        found[name] = marked(part, kept.count, due, timers, old)
    return found
