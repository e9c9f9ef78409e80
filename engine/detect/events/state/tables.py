"""The carried state as Arrow tables: `engine.core.values.Carried`.

    table             a row each                 columns
    node:<digest>     carried instance           slot, every, k0, k1, .., start, end, serials, roles
    occ:<event type>  occurrence referred to     serial, time, rank, depth, id:<columns>, p:<name>
    occ:<rule>        detection referred to (S8) likewise, and start, parts, events
    keys:<digest>     known key                  k0, k1, ..

k0, k1, .. are the key. `every` marks an instance of every key, or of the keys not seen yet. The
lists `serials` and `roles` are an instance's entries. The lists `parts` and `events` are the
serials and event types of what a detection stands for. p:<name> are parameters, id:<columns> the
occurrence ids of a column set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import Batch, Int64, UInt64
from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.kernels.entries import Entries, take_entries
from tidegate.engine.detect.events.occurrences.instances import (
    EVERY_KEY,
    Carry,
    Instances,
    Int32,
    concat,
)
from tidegate.engine.detect.events.occurrences.keys import Keys
from tidegate.engine.detect.events.occurrences.sources import CarriedOccurrences, CarriedParts
from tidegate.rules.errors import EngineError

SCHEMA = {b"tidegate.carried": b"2"}


def check(tables: Mapping[str, pa.Table]) -> None:
    """Raises `EngineError('carried-schema')` if there is a table of another version."""
    for name, table in tables.items():
        _check(name, table)


def _check(name: str, table: pa.Table) -> None:
    found = (table.schema.metadata or {}).get(b"tidegate.carried")
    if found != SCHEMA[b"tidegate.carried"]:
        raise EngineError(
            "carried-schema",
            f"carried table {name} has schema version {found!r}, this engine reads 2",
            "run the engine version that wrote the store, or start with a new store",
        )


# -- occurrences --------------------------------------------------------------------------------


def read_occurrences(event: str, table: pa.Table) -> CarriedOccurrences:
    """The carried occurrences of an event type."""
    names = table.column_names
    ids = {n[3:]: _ids(table.column(n)) for n in names if n.startswith("id:")}
    parameters = [n for n in names if n.startswith("p:")]
    depth = numbers(table, "depth").astype(np.int32)
    batch = Batch(
        event,
        numbers(table, "time"),
        np.arange(table.num_rows),
        table.select(parameters).rename_columns([n[2:] for n in parameters]),
        ids,
        depth if depth.any() else None,
    )
    next_serial = int((table.schema.metadata or {})[b"next_serial"])
    return CarriedOccurrences(
        batch, numbers(table, "serial"), numbers(table, "rank"), next_serial, read_parts(table)
    )


def _ids(column: pa.ChunkedArray) -> UInt64:
    """Ids of 16 bytes, none of them null, as uint64[n, 2]."""
    if not len(column):
        return np.empty((0, 2), dtype=np.uint64)
    chunk = column.combine_chunks()
    words = np.frombuffer(chunk.buffers()[1], np.uint64)
    return words[2 * chunk.offset : 2 * (chunk.offset + len(chunk))].reshape(-1, 2)


def read_parts(table: pa.Table) -> CarriedParts | None:
    """What the occurrences of a table stand for; None for those that are no rule's."""
    if "parts" not in table.column_names:
        return None
    offsets, serial = lists_in(table, "parts")
    return CarriedParts(numbers(table, "start"), offsets, flat(table, "events"), serial)


def with_parts(table: pa.Table, parts: CarriedParts) -> pa.Table:
    """A table of a rule's occurrences with what they stand for."""
    offsets = pa.array(parts.offsets.astype(np.int32))
    return (
        table.append_column("start", pa.array(parts.start))
        .append_column("parts", pa.ListArray.from_arrays(offsets, pa.array(parts.serial)))
        .append_column("events", pa.ListArray.from_arrays(offsets, parts.event))
    )


def write_occurrences(
    batch: Batch, kept: Int64, serial: Int64, rank: Int64, next_serial: int
) -> pa.Table:
    """The table of the occurrences kept[n] of `batch`, with their serials and ranks."""
    depth = np.zeros(len(kept), np.int32) if batch.depth is None else batch.depth[kept]
    columns = {
        "serial": pa.array(serial),
        "time": pa.array(batch.time[kept]),
        "rank": pa.array(rank),
        "depth": pa.array(depth),
    }
    for name, ids in batch.ids.items():
        raw = np.ascontiguousarray(ids[kept]).tobytes()
        columns["id:" + name] = pa.Array.from_buffers(
            pa.binary(16), len(kept), [None, pa.py_buffer(raw)]
        )
    table = pa.table(columns)
    parameters = batch.table.take(batch.row[kept])
    for name in parameters.column_names:
        table = table.append_column("p:" + name, parameters.column(name))
    metadata = {**SCHEMA, b"next_serial": str(next_serial).encode()}
    return table.replace_schema_metadata(metadata).combine_chunks()


def numbers(table: pa.Table, name: str) -> np.ndarray:
    """A column without nulls as an array of its own."""
    return np.array(table.column(name).to_numpy())


# -- nodes --------------------------------------------------------------------------------------


def key_columns(table: pa.Table) -> list[pa.ChunkedArray]:
    """The key columns, without the rows of every key."""
    names = [n for n in table.column_names if n[0] == "k"]
    if "every" in table.column_names and (every := numbers(table, "every")).any():
        table = table.filter(pa.array(~every))
    return [table.column(n) for n in names]


def serials_of(table: pa.Table, roles: Sequence[str]) -> Mapping[str, Int64]:
    """The serials that a node's table refers to, by event type."""
    (_, serial), (_, role) = lists_in(table, "serials"), lists_in(table, "roles")
    events: dict[str, list[Int64]] = {}
    for i, event in enumerate(roles):
        events.setdefault(event, []).append(serial[role == i])
    found = {event: np.unique(np.concatenate(parts)) for event, parts in events.items()}
    return {event: serials for event, serials in found.items() if len(serials)}


def read_carry(
    node: Node, table: pa.Table, key: Int32, unseen: int, found: Mapping[str, tuple[int, Int64]]
) -> Carry:
    """What `node` carries. key[n] are the codes of `key_columns`, `unseen` is the code of the keys
    not seen yet. `found` has for each event type its first row and its serials in order."""
    every = numbers(table, "every")
    code = np.empty(table.num_rows, dtype=np.int32)
    code[every] = unseen if node.census else EVERY_KEY
    code[~every] = key
    (offsets, serial), (_, role) = lists_in(table, "serials"), lists_in(table, "roles")
    row = np.empty(len(serial), dtype=np.int64)
    for i, event in enumerate(node.roles):
        mark = role == i
        if mark.any():
            base, serials = found[event]
            row[mark] = base + np.searchsorted(serials, serial[mark])
    start, end = numbers(table, "start"), numbers(table, "end")
    return _by_slot(node, table, Instances(code, start, end, offsets, row, role))


def _by_slot(node: Node, table: pa.Table, whole: Instances) -> Carry:
    slot = numbers(table, "slot")
    return tuple(whole.where(slot == s) for s in range(node.shape.slots))


def read_spans(node: Node, table: pa.Table) -> Carry:
    """What a node carries, without its keys and occurrences: all are of `EVERY_KEY` and row 0."""
    offsets, role = lists_in(table, "roles")
    key = np.full(len(table), EVERY_KEY, dtype=np.int32)
    row = np.zeros(len(role), dtype=np.int64)
    start, end = numbers(table, "start"), numbers(table, "end")
    return _by_slot(node, table, Instances(key, start, end, offsets, row, role))


def write_carry(node: Node, carry: Carry, keys: Keys, unseen: int, serial: Int64) -> pa.Table:
    """The table of what `node` carries; serial[r] is that of the step's occurrence r."""
    whole = concat(carry)
    slot = np.repeat(np.arange(len(carry), dtype=np.int16), [len(part) for part in carry])
    columns = {
        "slot": pa.array(slot),
        "every": pa.array(whole.key == (unseen if node.census else EVERY_KEY)),
        **{f"k{i}": column for i, column in enumerate(keys.values(whole.key))},
        "start": pa.array(whole.start),
        "end": pa.array(whole.end),
        "serials": lists_of(whole.offsets, serial[whole.row]),
        "roles": lists_of(whole.offsets, whole.role),
    }
    return pa.table(columns).replace_schema_metadata(SCHEMA)


def take_rows(table: pa.Table, index: Int64) -> pa.Table:
    """The rows of a table at `index`, of a node's or of known keys; Arrow takes lists slowly."""
    if "serials" not in table.column_names:
        return table.take(index)
    (offsets, serial), (_, role) = lists_in(table, "serials"), lists_in(table, "roles")
    entries = take_entries(Entries(offsets, serial, role), index)
    taken = table.drop_columns(["serials", "roles"]).take(index)
    taken = taken.append_column("serials", lists_of(entries.offsets, entries.row))
    return taken.append_column("roles", lists_of(entries.offsets, entries.role))


def write_keys(keys: Keys, known: Int32) -> pa.Table:
    """The table of known keys."""
    columns = {f"k{i}": column for i, column in enumerate(keys.values(known))}
    return pa.table(columns).replace_schema_metadata(SCHEMA)


def flat(table: pa.Table, name: str) -> pa.Array:
    """The values of a column of lists, one list after the other."""
    return table.column(name).combine_chunks().flatten()


def lists_in(table: pa.Table, name: str) -> tuple[Int64, np.ndarray]:
    """A column of lists of numbers: list i is values[offsets[i]:offsets[i + 1]]."""
    lists = table.column(name).combine_chunks()
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return offsets - offsets[0], np.array(lists.flatten().to_numpy())


def lists_of(offsets: Int64, values: np.ndarray) -> pa.Array:
    """A column of lists: list i is values[offsets[i]:offsets[i + 1]]."""
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))
