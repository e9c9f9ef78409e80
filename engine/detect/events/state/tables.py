"""The carried state as Arrow tables: `engine.core.values.Carried`.

    table             a row each                 columns
    node:<digest>     carried instance           slot, every, k0, k1, .., start, end, times,
                                                 numbers, roles
    occ:<event type>  occurrence referred to     time, number, rank, depth, id:<columns>, p:<name>
    occ:<rule>        detection referred to (S8) likewise, and start, times, numbers, events
    keys:<digest>     known key                  k0, k1, ..

An occurrence is named by its event type, its instant and a number that tells it apart from the
simultaneous ones of its type. So it has its name wherever and whenever it is written, and nothing
is counted on from step to step. The number of an arrival is its position among them, or what its
batch says; of a tick 0, as there is one at an instant (S6); of a rule's detection its position
among those of its key's slot.

k0, k1, .. are the key. `every` marks an instance of every key, or of the keys not seen yet. The
lists `times`, `numbers` and `roles` are an instance's entries. The lists `times`, `numbers` and
`events` name what a detection stands for. p:<name> are parameters, id:<columns> the occurrence ids
of a column set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidegate.engine.core.columns.hashing import count_equal, row_hash
from tidegate.engine.core.event_names import shown_name
from tidegate.engine.core.state_parts import metadata_of
from tidegate.engine.core.values import Batch, Int64, UInt64
from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.occurrences.concatenation import joined
from tidegate.engine.detect.events.occurrences.instances import (
    EVERY_KEY,
    Carry,
    Instances,
    Int32,
)
from tidegate.engine.detect.events.occurrences.sources import CarriedOccurrences
from tidegate.rules.errors import EngineError

VERSION = b"3"
SCHEMA = {b"tidegate.carried": VERSION}
_ENTRIES = ("times", "numbers", "roles")
_INSTANCE = ("slot", "every", "start", "end", *_ENTRIES)


def check(tables: Mapping[str, pa.Table]) -> None:
    """Raises `EngineError('carried-schema')` if there is a table of another version."""
    for name, table in tables.items():
        found = metadata_of(table).get(b"tidegate.carried")
        if found != VERSION:
            raise EngineError(
                "carried-schema",
                f"carried table {name} has schema version {found!r}, this engine reads "
                f"{VERSION.decode()}",
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
        shown_name(event),
        numbers(table, "time"),
        np.arange(table.num_rows),
        table.select(parameters).rename_columns([n[2:] for n in parameters]),
        ids,
        depth if depth.any() else None,
    )
    return CarriedOccurrences(batch, numbers(table, "number"), numbers(table, "rank"))


def each_once(event: str, parts: Sequence[pa.Table]) -> pa.Table:
    """The occurrences of all parts of a table, each once, in order of time and number."""
    if len(parts) == 1:
        return parts[0]
    whole = joined(event, parts)
    time, number = (whole.column(name).to_numpy() for name in ("time", "number"))
    order = np.lexsort((number, time))
    same = (np.diff(time[order]) == 0) & (np.diff(number[order]) == 0)
    return whole.take(order[np.append(True, ~same)]).combine_chunks()


def _ids(column: pa.ChunkedArray) -> UInt64:
    """Ids of 16 bytes, none of them null, as uint64[n, 2]."""
    if not len(column):
        return np.empty((0, 2), dtype=np.uint64)
    chunk = column.combine_chunks()
    words = np.frombuffer(chunk.buffers()[1], np.uint64)
    return words[2 * chunk.offset : 2 * (chunk.offset + len(chunk))].reshape(-1, 2)


def write_occurrences(batch: Batch, number: Int64, rank: Int64) -> pa.Table:
    """The table of some occurrences, with their numbers and ranks."""
    depth = np.zeros(len(batch), np.int32) if batch.depth is None else batch.depth
    columns = {
        "time": pa.array(batch.time),
        "number": pa.array(number),
        "rank": pa.array(rank),
        "depth": pa.array(depth),
    }
    for name, ids in batch.ids.items():
        raw = pa.py_buffer(np.ascontiguousarray(ids).tobytes())
        columns["id:" + name] = pa.Array.from_buffers(pa.binary(16), len(batch), [None, raw])
    parameters = compact(batch).table
    for name in parameters.column_names:
        columns["p:" + name] = parameters.column(name)
    return _table(columns)


def compact(batch: Batch) -> Batch:
    """The batch with its own rows alone in its table."""
    row = np.arange(len(batch))
    if batch.table.num_rows == len(batch) and (batch.row == row).all():
        return batch
    return replace(batch, row=row, table=batch.table.take(batch.row).combine_chunks())


def numbers(table: pa.Table, name: str) -> np.ndarray:
    """A column without nulls as an array of its own."""
    return np.array(table.column(name).to_numpy())


# -- nodes --------------------------------------------------------------------------------------


def each_instance(versions: Sequence[pa.Table]) -> pa.Table:
    """The instances of every key that are in any of some tables of a node, in order of slot and
    end. One that is twice in a table stays twice."""
    plain = [version.select(_INSTANCE) for version in versions]
    hashes = np.concatenate([count_equal(row_hash(one)) for one in plain])
    first = (count_equal(hashes) == hashes).all(axis=1)
    whole = pa.concat_tables(plain).filter(pa.array(first))
    order = np.lexsort((numbers(whole, "end"), numbers(whole, "slot")))
    found = whole.take(order).combine_chunks()
    columns = {field.name: pa.nulls(len(found), field.type) for field in versions[0].schema}
    return _table({**columns, **{name: found.column(name) for name in _INSTANCE}})


def key_columns(table: pa.Table) -> list[pa.ChunkedArray]:
    """The key columns, without the rows of every key."""
    names = [n for n in table.column_names if n[0] == "k"]
    if "every" in table.column_names and (every := numbers(table, "every")).any():
        table = table.filter(pa.array(~every))
    return [table.column(n) for n in names]


def read_carry(
    node: Node,
    parts: Sequence[pa.Table],
    key: Int32,
    unseen: int,
    found: Mapping[str, tuple[int, CarriedOccurrences]],
) -> Carry:
    """What `node` carries. key[n] are the codes of `key_columns` of all parts, `unseen` is the code
    of the keys not seen yet. `found` has for each event type its first row and its occurrences."""
    table = pa.concat_tables([part.select(_INSTANCE) for part in parts])
    every = numbers(table, "every")
    code = np.empty(table.num_rows, dtype=np.int32)
    code[every] = unseen if node.census else EVERY_KEY
    code[~every] = key
    (offsets, time), (_, number), (_, role) = (lists_in(table, name) for name in _ENTRIES)
    row = np.empty(len(time), dtype=np.int64)
    for i, event in enumerate(node.roles):
        mark = role == i
        if mark.any():
            first, known = found[event]
            row[mark] = first + known.places(time[mark], number[mark])
    start, end, slot = (numbers(table, name) for name in ("start", "end", "slot"))
    whole = Instances(code, start, end, offsets, row, role)
    if len(parts) > 1 and ((np.diff(end) < 0) & (np.diff(slot) == 0) | (np.diff(slot) < 0)).any():
        order = np.lexsort((end, slot))  # operators may rely on an order of end
        whole, slot = whole.take(order), slot[order]
    return tuple(whole.where(slot == s) for s in range(node.shape.slots))


def read_spans(node: Node, table: pa.Table) -> Carry:
    """What a part of a node carries, without its keys and occurrences: all are of `EVERY_KEY` and
    row 0."""
    offsets, role = lists_in(table, "roles")
    key = np.full(len(table), EVERY_KEY, dtype=np.int32)
    row = np.zeros(len(role), dtype=np.int64)
    start, end, slot = (numbers(table, name) for name in ("start", "end", "slot"))
    whole = Instances(key, start, end, offsets, row, role)
    return tuple(whole.where(slot == s) for s in range(node.shape.slots))


def write_instances(
    slot: np.ndarray, every: np.ndarray, keys: Sequence[pa.Array], found: Instances,
    time: Int64, number: Int64,
) -> pa.Table:  # fmt: skip
    """The table of some carried instances; time[r] and number[r] name the step's occurrence r."""
    offsets = pa.array(found.offsets.astype(np.int32))
    entries = (time[found.row], number[found.row], found.role)
    columns = {
        "slot": pa.array(slot),
        "every": pa.array(every),
        **{f"k{i}": column for i, column in enumerate(keys)},
        "start": pa.array(found.start),
        "end": pa.array(found.end),
    }
    for name, values in zip(_ENTRIES, entries, strict=True):
        columns[name] = pa.ListArray.from_arrays(offsets, pa.array(values))
    return _table(columns)


def _table(columns: Mapping[str, pa.Array]) -> pa.Table:
    return pa.Table.from_arrays([*columns.values()], [*columns], metadata=SCHEMA)


def write_keys(keys: Sequence[pa.Array]) -> pa.Table:
    """The table of known keys."""
    columns = {f"k{i}": column for i, column in enumerate(keys)}
    return _table(columns)


def flat(table: pa.Table, name: str) -> pa.Array:
    """The values of a column of lists, one list after the other."""
    return table.column(name).combine_chunks().flatten()


def lists_in(table: pa.Table, name: str) -> tuple[Int64, np.ndarray]:
    """A column of lists of numbers: list i is values[offsets[i]:offsets[i + 1]]."""
    lists = table.column(name).combine_chunks()
    offsets = lists.offsets.to_numpy().astype(np.int64)
    return offsets - offsets[0], np.array(lists.flatten().to_numpy())


def lists_of(offsets: Int64, values: np.ndarray | pa.Array) -> pa.Array:
    """A column of lists: list i is values[offsets[i]:offsets[i + 1]]."""
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))
