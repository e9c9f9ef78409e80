"""The memory of large columns: looked at without a copy, sent to other processes, given back.

What Python has let go of is not the system's again at once: Arrow's pool and malloc keep it for
themselves. A bucket whose firings take 100 MB leaves as much, and a process that is measured by its
peak has both.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_SENT = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_MAPPED_FROM, _MAPPED_BYTES = -3, 1 << 22  # M_MMAP_THRESHOLD
_SHARED_ROWS = 1 << 16
_GOT = pa.ipc.IpcReadOptions(use_threads=False)


def in_one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The values of a column as one array. A single chunk is not copied, which Arrow would do."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def of_one_value(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same column. If all values are equal, its chunks are one array, which is small."""
    count = len(column)
    if count <= _SHARED_ROWS or column.null_count:
        return column
    if not pc.all(pc.equal(column, column[0])).as_py():
        return column
    one = pa.repeat(column[0], _SHARED_ROWS)
    chunks = [one] * (count // _SHARED_ROWS) + [one.slice(0, count % _SHARED_ROWS)]
    return pa.chunked_array(chunks, column.type)


def sent(table: pa.Table) -> bytes:
    """A table for another process, compressed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_SENT) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def got(data: bytes) -> pa.Table:
    """The table that was `sent`, each column in a place of its own in Arrow's pool."""
    return pa.ipc.open_stream(data, options=_GOT).read_all()


def give_back() -> None:
    """Give the system the memory that nobody uses, and from now on that of large arrays as soon as
    they are let go of. It takes a millisecond: for large buckets."""
    pa.default_memory_pool().release_unused()
    if (trim := _trim()) is not None:
        trim(0)


@cache
def _trim() -> Any:
    """`malloc_trim`; None in a system without it. From the first call on malloc maps each array of
    4 MB and more by itself. Before, it keeps the room of one that is smaller than one that was let
    go of."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_MAPPED_FROM, _MAPPED_BYTES)
    return getattr(library, "malloc_trim", None)
