"""What is carried, as a step has it in hand.

Between buckets the detector keeps this beside the tables that it was written to. Then nothing is
decoded anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.values import Carried, Int64
from tidegate.engine.detect.events.graph.graph import Graph
from tidegate.engine.detect.events.occurrences.instances import Carry, Int32
from tidegate.engine.detect.events.occurrences.keys import NO_KEYS, Columns, Keys, encode
from tidegate.engine.detect.events.occurrences.occurrences import in_order
from tidegate.engine.detect.events.occurrences.sources import CarriedOccurrences, Parts
from tidegate.engine.detect.events.state import tables
from tidegate.engine.detect.events.state.partitions import EVERY, count_of, grouped, place

Tables = Mapping[str, Mapping[int, pa.Table]]
"""Parts by table and partition."""
UNKNOWN = -2
"""The partition of a key that is not known."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a graph carries.

    events    by event type, in order of their numbering (`in_order`), its occurrences; their rows
              are numbered one event type after the other
    carry     by node; its rows are these, its keys are codes of `keys`
    known     by census, the codes of its keys
    keys      by domain
    homes     by domain, the partition of each key code, of `count`, or `UNKNOWN`
    foreign   the names of tables that are of no use to the graph
    """

    graph: Graph
    events: Mapping[str, CarriedOccurrences] = field(default_factory=dict)
    carry: Mapping[str, Carry] = field(default_factory=dict)
    known: Mapping[str, Int32] = field(default_factory=dict)
    keys: Mapping[int | None, Keys] = field(default_factory=dict)
    homes: Mapping[int | None, Int64] = field(default_factory=dict)
    count: int = 1
    foreign: frozenset[str] = frozenset()


def decoded(graph: Graph, carried: Carried) -> Decoded:
    """What a graph carries, from its tables unless it is in hand. Raises
    `EngineError('carried-schema')`."""
    known = carried.decoded
    if isinstance(known, Decoded) and known.graph is graph:
        return known
    tables.check(carried.tables)
    parts = grouped(carried.tables)
    codes, keys, homes = _codes(graph, parts)
    events, firsts = _occurrences(parts)
    found = {event: (firsts[event], known) for event, known in events.items()}
    carry = {}
    for digest, node in graph.nodes.items():
        name = "node:" + digest
        if name in parts:
            unseen = keys.get(graph.domain(node), NO_KEYS).count + 1
            some = [*parts[name].values()]
            carry[digest] = tables.read_carry(node, some, codes[name], unseen, found)
    census = {name: codes[name] for name in graph.censuses if name in codes}
    used = {*codes, *("occ:" + event for event in events)}
    foreign = frozenset(name for name in carried.tables if place(name)[0] not in used)
    count = count_of(carried.tables.values())
    return Decoded(graph, events, carry, census, keys, homes, count, foreign)


def _codes(
    graph: Graph, parts: Tables
) -> tuple[dict[str, Int32], dict[int | None, Keys], dict[int | None, Int64]]:
    """The key codes of the tables of nodes and censuses, all parts one after the other; the keys of
    each domain, and the partition of each."""
    domains = {"node:" + digest: graph.domain(node) for digest, node in graph.nodes.items()}
    domains |= {name: graph.census_domain(name) for name in graph.censuses}
    chunks: dict[int | None, list[tuple[str, int, Columns]]] = defaultdict(list)
    found = {name: [np.empty(0, np.int32)] for name in domains if name in parts}
    for name in found:
        for partition, part in parts[name].items():
            if columns := tables.key_columns(part):
                chunks[domains[name]].append((name, partition, columns))
    keys, homes = {}, {}
    for domain, named in chunks.items():
        codes, keys[domain] = encode([columns for _, _, columns in named])
        homes[domain] = np.full(keys[domain].count + 2, UNKNOWN)
        homes[domain][[0, -1]] = EVERY
        for (name, partition, _), code in zip(named, codes, strict=True):
            homes[domain][code] = partition
            found[name].append(code)
    return {name: np.concatenate(some) for name, some in found.items()}, keys, homes


def _occurrences(
    parts: Tables,
) -> tuple[dict[str, CarriedOccurrences], dict[str, int]]:
    """The occurrences of each event type, and the row of the first."""
    names = in_order(name[4:] for name in parts if name.startswith("occ:"))
    whole = {event: tables.each_once(event, [*parts["occ:" + event].values()]) for event in names}
    events = {event: tables.read_occurrences(event, table) for event, table in whole.items()}
    sizes = np.cumsum([0, *map(len, events.values())]).tolist()
    firsts = dict(zip(events, sizes, strict=False))
    for event, table in whole.items():
        if "events" in table.column_names:
            stands_for = _stands_for(table, events, firsts)
            events[event] = replace(events[event], parts=stands_for)
    return events, firsts


def _stands_for(
    table: pa.Table, events: Mapping[str, CarriedOccurrences], firsts: Mapping[str, int]
) -> Parts:
    """What a rule's detections stand for."""
    (offsets, time), (_, number) = (tables.lists_in(table, name) for name in ("times", "numbers"))
    row, named = np.empty(len(time), dtype=np.int64), tables.flat(table, "events")
    for event in pc.unique(named).to_pylist():
        mark = pc.equal(named, event).to_numpy(zero_copy_only=False)
        row[mark] = firsts[event] + events[event].places(time[mark], number[mark])
    return Parts(tables.numbers(table, "start"), offsets, row)
