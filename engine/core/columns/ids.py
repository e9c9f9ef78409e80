"""Ids of occurrences and firings that are the same in every replay (G6).

An id has 128 bits, uint64[2]. It is a hash of names and values (not a cryptographic one). Chunks,
slices and dictionaries of Arrow, buckets, stores and wall clocks do not change it. Among a billion
ids two are equal by chance with probability 2**-64.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from tidegate.engine.core.columns.hashing import (
    count_equal,
    mix_chosen,
    mix_rows,
    row_hash,
    sum_by_offsets,
)
from tidegate.engine.core.values import (
    ENGINE,
    Batch,
    ChangeKind,
    Detections,
    Int64,
    UInt64,
    hex_texts,
)


def column_set(columns: Iterable[str]) -> str:
    """The digest that names a set of columns in `Batch.ids`."""
    text = "\x00".join(sorted(set(columns)))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def occurrence_ids(
    event: str,
    table_id: str,
    rows: Int64,
    version: Int64,
    kind: Int64,
    hashes: UInt64,
    *,
    counted: bool = True,
) -> UInt64:
    """Ids uint64[n, 2] of n rows of a table: (event type, table id, version, change kind,
    parameter hash, duplicate number). Not `counted`, they have no duplicate number: where equal
    rows have met, `engine.core.columns.hashing.count_equal` of them gives the same ids.

    rows[n] says which of the m changes in version[m], kind[m] (`engine.core.values.ChangeKind`) and
    hashes[m, 2]; these are `engine.core.columns.hashing.row_hash` of the parameters: a null is as
    if the column were not there.
    """
    number = version * np.int64(len(ChangeKind)) + kind
    seed = _seed("occurrence", event, table_id)
    if not counted:
        return mix_rows(hashes[rows], seed, number[rows])
    return mix_chosen(hashes, rows, seed, version, number)


def signal_ids(event: str, keys: Sequence[tuple[str, str]]) -> UInt64:
    """Ids uint64[n, 2] of n signals, from their keys in the store: (id, namespace)."""
    of_engine = np.array([namespace == ENGINE for _, namespace in keys], np.int64)
    names = pa.table({"id": pa.array([id for id, _ in keys], pa.string())})
    return mix_rows(row_hash(names), _seed("signal", event), of_engine)


def instant_ids(event: str, time: Int64) -> UInt64:
    """Ids uint64[n, 2] of n occurrences of a clock, or of n ticks. They have a time only."""
    none = np.zeros((len(time), 2), np.uint64)
    return mix_rows(none, _seed("instant", event), time)


def ids_by(batch: Batch, columns: Iterable[str]) -> UInt64:
    """Ids uint64[n, 2] of a batch's occurrences, of these parameters; of a clock's, and of ticks,
    which have none, of their instants."""
    return batch.ids_by(column_set(columns)) if batch.ids else instant_ids(batch.event, batch.time)


def constituent_ids(found: Detections, columns: Mapping[str, Iterable[str]]) -> UInt64:
    """Ids uint64[m, 2] of the constituents of detections. `columns`: by event type, the parameters
    of which they are."""
    return found.gathered(
        lambda event, batch: ids_by(batch, columns.get(event, ())),
        np.empty((len(found.event_row), 2), np.uint64),
    )


def firing_ids(
    rulebook: str,
    rule: str,
    keys: pa.Table,
    start: Int64,
    end: Int64,
    offsets: Int64,
    occurrences: UInt64,
) -> UInt64:
    """Ids uint64[n, 2] of n firings: (rulebook, rule, key, start, end, occurrence ids in any order,
    duplicate number).

    keys: n rows (a table without columns for a rule without `per:`); start[n], end[n]; the
    occurrences of firing i are rows offsets[i]:offsets[i + 1] of `occurrences`, uint64[m, 2].
    """
    key = row_hash(keys) if keys.num_columns else np.zeros((len(start), 2), np.uint64)
    ids = mix_rows(key, _seed("firing", rulebook, rule), start)
    ids = mix_rows(ids, _seed("end"), end)
    ids = mix_rows(ids + sum_by_offsets(occurrences, offsets), _seed("count"), np.diff(offsets))
    return count_equal(ids)


def key_ids(keys: pa.Table, count: int) -> UInt64:
    """Ids uint64[n, 2] of n keys, by the names, types and values of their columns."""
    hashes = row_hash(keys) if keys.num_columns else np.zeros((count, 2), np.uint64)
    columns = (f"{field.name} {field.type}" for field in keys.schema)
    return mix_rows(hashes, _seed("key", *columns), np.zeros(count, np.int64))


def repeat_ids(keys: UInt64, names: Sequence[str], hashes: UInt64, offsets: Int64) -> UInt64:
    """Ids uint64[n, 2] by which dedupe tells n firings apart: from keys[i], the id of the key, and
    hashes[offsets[i]:offsets[i + 1]], the hashes of the columns `names` of its rows, in order."""
    counts = np.diff(offsets)
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    rows = mix_rows(hashes, _seed("repeat", *names), place)
    return mix_rows(keys + sum_by_offsets(rows, offsets), _seed("count"), counts)


def as_binary(ids: UInt64) -> pa.FixedSizeBinaryArray:
    """The ids as fixed_size_binary[16], big-endian, so that their order is that of their hex."""
    data = np.ascontiguousarray(ids).astype(">u8").tobytes()
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(ids), [None, pa.py_buffer(data)])


def as_hex(ids: UInt64) -> pa.StringArray:
    """The ids as strings of 32 lower-case hexadecimal digits."""
    return hex_texts(np.ascontiguousarray(ids).astype(">u8").tobytes())


def _seed(*parts: str) -> tuple[np.uint64, np.uint64]:
    text = "".join(f"{len(part)}:{part}" for part in parts)
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return (
        np.uint64(int.from_bytes(digest[:8], "big")),
        np.uint64(int.from_bytes(digest[8:], "big")),
    )
