"""Carried tables in parts, one for each partition of the keys' hash. Parts are joined before a
step, and cut after it.

`node:1f/3` holds the instances of node 1f whose key is of partition 3, `node:1f/every` those of
every key. `occ:a/3` holds the occurrences of `a` that instances of partition 3 refer to. An
occurrence that several partitions refer to is stored in each of them, under the same serial. Every
step reads `occ:a/every`: it also has the next serial. A single partition is named `/0`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tidegate.engine.core.columns.hashing import row_hash
from tidegate.engine.core.event_names import is_tick
from tidegate.engine.core.values import DUE, FOREVER, TIMERS, Carried, Int64, UInt64
from tidegate.engine.detect.events.graph.graph import Graph
from tidegate.engine.detect.events.kernels import table_rows
from tidegate.engine.detect.events.occurrences.comparison import united
from tidegate.engine.detect.events.occurrences.concatenation import joined
from tidegate.engine.detect.events.state.tables import flat, lists_in, lists_of, take_rows

EVERY = -1
"""The partition of instances of every key, and of the keys not seen yet."""
Tables = Mapping[str, pa.Table]
Parts = dict[str, dict[int, pa.Table]]
"""Parts by table and partition."""
Renumbering = tuple[Int64, Int64]
"""Serials in order, and the serials that replace them."""
Pair = tuple[Int64, Int64]
"""For n references: the partition that holds each, and the serial that it refers to."""
_COUNT, _NEXT = b"partitions", b"next_serial"


def part_name(whole: str, partition: int) -> str:
    return f"{whole}/{'every' if partition == EVERY else partition}"


def place(name: str) -> tuple[str, int]:
    """The table and the partition of a part."""
    whole, _, partition = name.rpartition("/")
    return whole, EVERY if partition == "every" else int(partition)


def grouped(tables: Tables) -> Parts:
    found: Parts = defaultdict(dict)
    for name, table in tables.items():
        whole, partition = place(name)
        found[whole][partition] = table
    return found


def count_of(tables: Tables) -> int:
    """Into how many partitions the tables are cut."""
    return next((int(t.schema.metadata.get(_COUNT, 1)) for t in tables.values()), 1)


def next_due(carried: Carried) -> int | None:
    """The watermark at which the first carried timer is due, or something that was held back is
    let go; None if there is neither."""
    return earliest(map(due_of, carried.tables.values()))


def earliest(due: Iterable[int]) -> int | None:
    """The earliest of some instants; `FOREVER` is none."""
    first = min(due, default=FOREVER)
    return first if first < FOREVER else None


def due_of(part: pa.Table) -> int:
    """The watermark at which the first timer of a part is due, or something of it is let go."""
    return int((part.schema.metadata or {}).get(DUE, FOREVER))


def saying_due(part: pa.Table, due: int, timers: int) -> pa.Table:
    """The part with the watermark at which its first timer is due, and the number of its timers, as
    metadata."""
    return _marked(part, part, {DUE: due, TIMERS: timers})


def partitions(columns: Iterable[pa.ChunkedArray], count: int) -> Int64:
    """The partition of each key."""
    return (key_hash(columns) % np.uint64(count)).astype(np.int64)


def key_hash(columns: Iterable[pa.ChunkedArray]) -> UInt64:
    """A hash of each key: the same for equal keys, whatever their types."""
    plain = {f"k{i}": _of_one_kind(column) for i, column in enumerate(columns)}
    return row_hash(pa.table(plain))[:, 0]


def _of_one_kind(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates as the instants that they are equal to."""
    return column.cast(pa.timestamp("us")) if pa.types.is_date(column.type) else column


# -- joining ------------------------------------------------------------------------------------


def join(graph: Graph, parts: Mapping[str, Mapping[int, pa.Table]]) -> dict[str, pa.Table]:
    """The parts of each table one after the other."""
    found: dict[str, pa.Table] = {}
    same: dict[str, Renumbering] = {}
    for name, some in parts.items():
        if not name.startswith("occ:"):
            found[name] = _join_rows([*some.values()])
            continue
        event = name[4:]
        found[name] = _join_occurrences(event, [*some.values()])
        if is_tick(event) and len(some) > 1:
            found[name], same[event] = _one_an_instant(found[name])
    for name in found if same else ():
        if name.startswith("node:") and name[5:] in graph.nodes:
            found[name] = _renumbered(found[name], graph.nodes[name[5:]].roles, same)
    return found


def _join_rows(parts: Sequence[pa.Table]) -> pa.Table:
    """The rows of a node's parts. If each part is in order of end the whole is, for operators may
    rely on it."""
    if len(parts) == 1:
        return parts[0]
    whole = _concatenated(parts)
    if "end" not in whole.column_names:
        return whole
    slot, end = (whole.column(name).to_numpy() for name in ("slot", "end"))
    falls = (slot[1:] < slot[:-1]) | ((slot[1:] == slot[:-1]) & (end[1:] < end[:-1]))
    falls[np.cumsum([len(part) for part in parts])[:-1] - 1] = False
    return whole if falls.any() else take_rows(whole, np.lexsort((end, slot)))


def _concatenated(parts: Sequence[pa.Table]) -> pa.Table:
    """The parts one after the other. Key columns may differ in type, as parts were written in
    different steps."""
    first = parts[0]
    if all(part.schema == first.schema for part in parts):
        return pa.concat_tables(parts)
    columns = [
        united([part.column(name) for part in parts])
        if name[0] == "k"
        else pa.chunked_array([chunk for part in parts for chunk in part.column(name).chunks])
        for name in first.column_names
    ]
    return pa.table(columns, first.column_names).replace_schema_metadata(first.schema.metadata)


def _join_occurrences(event: str, parts: Sequence[pa.Table]) -> pa.Table:
    """The occurrences of all parts, each once, in order of serial."""
    if len(parts) == 1:
        return parts[0]
    following = max(int(part.schema.metadata[_NEXT]) for part in parts)
    whole = joined(event, [part for part in parts if len(part)] or parts[:1])
    serial = whole.column("serial").to_numpy()
    _, first = np.unique(serial, return_index=True)
    if len(first) < len(serial) or (first[1:] < first[:-1]).any():
        whole = whole.take(first)
    return _marked(whole, parts[0], {_NEXT: following}).combine_chunks()


def _one_an_instant(ticks: pa.Table) -> tuple[pa.Table, Renumbering]:
    """The ticks with one for each instant (S6), and the serials that this replaces. Partitions that
    were stepped apart may each have made a tick at one instant."""
    time, serial = ticks.column("time").to_numpy(), ticks.column("serial").to_numpy()
    _, first, at = np.unique(time, return_index=True, return_inverse=True)
    return ticks.take(np.sort(first)), (serial, serial[first][at])


def _renumbered(table: pa.Table, roles: Sequence[str], same: Mapping[str, Renumbering]) -> pa.Table:
    (offsets, serial), (_, role) = lists_in(table, "serials"), lists_in(table, "roles")
    for number, event in enumerate(roles):
        if event in same:
            old, new = same[event]
            mark = role == number
            serial[mark] = new[np.searchsorted(old, serial[mark])]
    column = lists_of(offsets, serial)
    return table.set_column(table.column_names.index("serials"), "serials", column)


# -- cutting ------------------------------------------------------------------------------------


def cut(graph: Graph, before: Tables, after: Tables, count: int, *, anew: bool) -> Parts:
    """The parts of the tables of `after` that differ from `before`; `anew`: of all tables."""
    new = {name for name, table in after.items() if anew or before.get(name) is not table}
    found: Parts = {name: {} for name in before.keys() - after.keys()}
    if count == 1:
        return found | {name: {0: after[name]} for name in new}
    refers: dict[str, list[Pair]] = defaultdict(list)
    for name, table in after.items():
        if name.startswith("occ:"):
            continue
        of = _partition_of(table, count)
        if name in new:
            found[name] = _cut(table, of, count)
        if name.startswith("node:"):
            for event, pair in _references(table, graph.nodes[name[5:]].roles, of):
                refers[event].append(pair)
    occurrences = [name for name in after if name.startswith("occ:")]
    for name in sorted(occurrences, key=lambda name: "parts" not in after[name].column_names):
        whole = after[name]
        stands_for = "parts" in whole.column_names  # a rule's detections bring their constituents
        if name not in new and not stands_for:
            continue
        of, serial = _once(refers[name[4:]])
        rows = whole.take(np.searchsorted(whole.column("serial").to_numpy(), serial))
        if stands_for:
            for event, pair in _constituents(rows, of):
                refers[event].append(pair)
        if name in new:
            found[name] = _cut_occurrences(whole, rows, of, count)
    return found


def with_serials(before: Tables, after: Tables) -> Tables:
    """The tables of `after`, and for event types that nothing refers to any more an empty one, so
    that serials go on where they were."""
    gone = [name for name in before.keys() - after.keys() if name.startswith("occ:")]
    return {**after, **{name: before[name].slice(0, 0) for name in gone}}


def _partition_of(table: pa.Table, count: int) -> Int64:
    """The partition of each row: of a node's instance, or of a known key."""
    names = [name for name in table.column_names if name[0] == "k"]
    every = np.zeros(len(table), dtype=np.bool_)
    if "every" in table.column_names:
        every = np.array(table.column("every"))
    if every.all() or not names:
        return np.full(len(table), EVERY, dtype=np.int64)
    of = partitions([table.column(name) for name in names], count)
    of[every] = EVERY
    return of


def _cut(table: pa.Table, of: Int64, count: int) -> dict[int, pa.Table]:
    """A table's rows by partition, in the order that they have."""
    order, bounds = table_rows.split(of + 1, count + 1)
    if (of[1:] < of[:-1]).any():
        table = take_rows(table, order)
    table = _marked(table, table, {_COUNT: count})
    spans = enumerate(pairwise(bounds.tolist()), start=EVERY)
    return {partition: table.slice(a, b - a) for partition, (a, b) in spans if a < b}


def _cut_occurrences(whole: pa.Table, rows: pa.Table, of: Int64, count: int) -> dict[int, pa.Table]:
    found = _cut(_marked(rows, whole, {_NEXT: 0}), of, count)
    every = found.get(EVERY, rows.slice(0, 0))
    following = int(whole.schema.metadata[_NEXT])
    found[EVERY] = _marked(every, whole, {_COUNT: count, _NEXT: following})
    return found


def _references(table: pa.Table, roles: Sequence[str], of: Int64) -> Iterator[tuple[str, Pair]]:
    """The references of a node's instances, by event type."""
    (offsets, serial), (_, role) = lists_in(table, "serials"), lists_in(table, "roles")
    at = np.repeat(of, np.diff(offsets))
    for number, event in enumerate(roles):
        mark = role == number
        yield event, (at[mark], serial[mark])


def _constituents(rows: pa.Table, of: Int64) -> Iterator[tuple[str, Pair]]:
    """The references of a rule's detections to their constituents, by event type."""
    offsets, serial = lists_in(rows, "parts")
    at = np.repeat(of, np.diff(offsets))
    events = flat(rows, "events").dictionary_encode()
    code = events.indices.to_numpy(zero_copy_only=False)
    for number, event in enumerate(events.dictionary.to_pylist()):
        mark = code == number
        yield event, (at[mark], serial[mark])


def _once(pairs: Sequence[Pair]) -> Pair:
    """Each pair of partition and serial once, in order."""
    if not pairs:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    of, serial = (np.concatenate(column) for column in zip(*pairs, strict=True))
    low = serial.min(initial=0)
    bits = int(serial.max(initial=0) - low).bit_length()
    pair = np.sort((of << bits) + (serial - low))
    pair = pair[np.append(True, pair[1:] != pair[:-1])[: len(pair)]]
    return pair >> bits, (pair & ((1 << bits) - 1)) + low


def _marked(table: pa.Table, like: pa.Table, more: Mapping[bytes, int]) -> pa.Table:
    added = {key: str(value).encode() for key, value in more.items()}
    return table.replace_schema_metadata({**(like.schema.metadata or {}), **added})
