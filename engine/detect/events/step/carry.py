"""The end of a step: carried instances and the occurrences that they refer to, in hand and as
tables. Only what has changed is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import cast

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import FOREVER, Carried, Int64
from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.graph.timers import Timed
from tidegate.engine.detect.events.occurrences.instances import (
    EVERY_KEY,
    Carry,
    Instances,
    Int32,
    concat,
)
from tidegate.engine.detect.events.occurrences.keys import NO_KEYS, Keys
from tidegate.engine.detect.events.state.decoded import Decoded
from tidegate.engine.detect.events.state.partitions import (
    by_partition,
    count_of,
    dropped_at,
    marked,
    part_name,
    place,
    replaced,
    sliced,
)
from tidegate.engine.detect.events.state.tables import read_spans, write_instances, write_keys
from tidegate.engine.detect.events.step.frame import Frame
from tidegate.engine.detect.events.step.kept import Homes, Kept

_SPARE = 1_024
"""So many keys of which nothing is carried stay in hand, beside as many as instances are."""


def carry_on(
    frame: Frame, carry: Mapping[str, Carry], stored: Carried, count: int, timed: Mapping[str, int]
) -> Carried:
    """What to carry on, in `count` partitions. The nodes of the step carry on `carry`, the others
    what they did. `timed`: of the nodes with timers how far they run behind."""
    graph, decoded = frame.graph, frame.decoded
    anew = bool(stored.tables) and count != count_of(stored.tables.values())
    before = {digest: frame.stored(graph.nodes[digest]) or () for digest in decoded.carry}
    after = {d: slots for d, slots in {**before, **carry}.items() if any(map(len, slots))}
    known = {**_known(frame), **{name: frame.known(name) for name in frame.censuses}}
    nodes = [d for d in {**before, **after} if anew or not _same(before.get(d), after.get(d))]
    names = [name for name, (code, new) in known.items() if len(code if anew else new)]
    if not (nodes or names or decoded.foreign):
        return Carried(stored.tables, decoded=decoded)
    homes = Homes(frame, count)
    touched = None if anew or decoded.foreign else _events_of(nodes, frame)
    kept = Kept(frame, after, homes, touched)
    written = kept.tables()
    for digest in nodes:
        if digest in after:
            node = graph.nodes[digest]
            written |= _node_parts(node, after[digest], homes, kept, frame, timed.get(digest))
    for name in names:
        written |= _key_parts(name, known[name][0], homes, frame)
    whole = {*("node:" + d for d in nodes), *names, *("occ:" + e for e in kept.looked_at)}
    read = {n for n in stored.tables if n in decoded.foreign or place(n)[0] in whole}
    left, changed = replaced(stored.tables, read, written)
    codes = {name: code for name, (code, _) in known.items()}
    return Carried(left, changed, _in_hand(frame, after, kept, codes, homes))


def _known(frame: Frame) -> dict[str, tuple[Int32, Int32]]:
    """The known keys of the censuses that are carried, none of them new."""
    none = np.empty(0, np.int32)
    return {
        name: (frame.codes.coded(frame.graph.census_domain(name), code), none)
        for name, code in frame.decoded.known.items()
    }


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
    node: Node, carry: Carry, homes: Homes, kept: Kept, frame: Frame, behind: int | None
) -> dict[str, pa.Table]:
    """The tables of what a node carries. `behind`: how far it runs behind, if it has timers."""
    whole, domain = concat(carry), frame.graph.domain(node)
    slot = np.repeat(np.arange(len(carry), dtype=np.int16), [len(part) for part in carry])
    of = homes.of(domain, whole.key)[whole.key]
    order, spans = by_partition(of, homes.count)
    if len(spans) > 1:
        whole, slot = whole.take(order), slot[order]
    keys = homes.keys.get(domain, NO_KEYS)
    every = (whole.key == EVERY_KEY) | (whole.key > keys.count)
    table = write_instances(slot, every, keys.values(whole.key), whole, kept.time, kept.number)
    found = {}
    for partition, part in sliced(marked(table, homes.count), spans).items():
        due, timers = FOREVER, 0
        if behind is not None:
            instants = cast(Timed, node.shape).due(read_spans(node, part))
            due, timers = int(instants.min(initial=FOREVER)) + behind, len(instants)
        old = dropped_at(whole.start[spans[partition]], node.horizon_micros)
        said = timers or old < FOREVER
        name = part_name("node:" + node.digest, partition)
        found[name] = marked(part, homes.count, due, timers, old) if said else part
    return found


def _key_parts(name: str, known: Int32, homes: Homes, frame: Frame) -> dict[str, pa.Table]:
    """The tables of the known keys of a census."""
    domain = frame.graph.census_domain(name)
    order, spans = by_partition(homes.of(domain, known)[known], homes.count)
    table = marked(write_keys(homes.keys[domain].values(known[order])), homes.count)
    return {part_name(name, partition): part for partition, part in sliced(table, spans).items()}


def _in_hand(
    frame: Frame, after: Mapping[str, Carry], kept: Kept, known: Mapping[str, Int32], homes: Homes
) -> Decoded:
    """What is carried on, in hand."""
    domains = {digest: frame.graph.domain(frame.graph.nodes[digest]) for digest in after}
    keys, found, codes = dict(homes.keys), dict(homes.found), dict[int | None, Int32]()
    for domain in keys:
        used = [part.key for d in after if domains[d] == domain for part in after[d]]
        used += [code for name, code in known.items() if frame.graph.census_domain(name) == domain]
        if keys[domain].count > 2 * sum(map(len, used)) + _SPARE:
            keys[domain], codes[domain] = _fewer(keys[domain], np.concatenate([[0], *used]))
            found.pop(domain, None)

    def coded(domain: int | None, key: Int32) -> Int32:
        return codes[domain][key] if domain in codes else key

    carry = {
        digest: tuple(
            replace(part, key=coded(domains[digest], part.key), row=kept.again[part.row])
            for part in slots
        )
        for digest, slots in after.items()
    }
    known = {n: coded(frame.graph.census_domain(n), code) for n, code in known.items()}
    return Decoded(frame.graph, kept.events, carry, known, keys, found, homes.count)


def _fewer(keys: Keys, used: Int64) -> tuple[Keys, Int32]:
    """The keys of some codes, and for each code its new one."""
    mark = np.zeros(keys.count + 2, dtype=np.bool_)
    mark[used] = True
    mark[[0, -1]] = False
    left = np.flatnonzero(mark).astype(np.int32)
    code = np.zeros(len(mark), dtype=np.int32)
    code[left] = np.arange(1, len(left) + 1)
    code[-1] = len(left) + 1
    return Keys(tuple(keys.values(left)), len(left)), code
