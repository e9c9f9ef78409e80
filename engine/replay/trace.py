"""Reading a trace: JSON lines -> tables of occurrences in order of time, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from engine.replay.lines import Lines
from engine.values import Int64
from rules.model import Rulebook

CHUNK_LINES = 200_000
_SAMPLE_LINES = 1_000


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that has been read and found right.

    Its chunks are tables in order of time, memory-mapped where there are several: `event` (a code
    of `events`), `time` (microseconds), `json_values.LINE` and the key fields by name, as
    `json_values.encode` has them. `iso`: its times are ISO 8601.
    """

    iso: bool
    events: tuple[str, ...]
    chunks: tuple[pa.Table, ...]

    def first(self) -> int | None:
        """The first instant; None for an empty trace."""
        return min((int(times(chunk)[0]) for chunk in self.chunks), default=None)

    def windows(self) -> Iterator[pa.Table]:
        """All occurrences in order of time, about a chunk at a time, no instant in two windows.
        Simultaneous ones keep the order of the lines."""
        samples = [times(chunk)[::_SAMPLE_LINES] for chunk in self.chunks]
        edges = np.sort(np.concatenate([np.empty(0, np.int64), *samples]))
        low = np.zeros(len(self.chunks), dtype=np.int64)
        for edge in [*np.unique(edges[:: CHUNK_LINES // _SAMPLE_LINES])[1:], None]:
            parts = []
            for i, chunk in enumerate(self.chunks):
                high = chunk.num_rows if edge is None else np.searchsorted(times(chunk), edge)
                if high > low[i]:
                    parts.append(chunk.slice(low[i], high - low[i]))
                    low[i] = high
            if parts:
                yield _in_order(pa.concat_tables(parts))


def times(table: pa.Table) -> Int64:
    column: Int64 = table.column("time").to_numpy()
    return column


def _in_order(table: pa.Table) -> pa.Table:
    time = times(table)
    if (time[1:] >= time[:-1]).all():
        return table
    return table.take(pa.array(np.argsort(time, kind="stable")))


def read(path: Path, book: Rulebook, until: int | None, folder: Path) -> Trace:
    """Read and check a whole trace; lines after `until` are skipped. A long one is kept in a file
    in `folder`, each chunk sorted. Raises `InputError` with the lines that are wrong."""
    lines = Lines(path, book, until)
    chunks: list[pa.Table] = []
    writer = None
    spool = folder / "trace.arrow"
    for chunk in lines.chunks(CHUNK_LINES):
        ordered = _in_order(chunk)
        if len(chunk) == CHUNK_LINES or writer is not None:
            writer = writer or pa.ipc.new_file(spool, chunk.schema)
            writer.write_table(ordered)
        else:
            chunks.append(ordered)
    if writer is not None:
        writer.close()
        reader = pa.ipc.open_file(pa.memory_map(str(spool)))
        batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
        chunks = [pa.Table.from_batches([batch]) for batch in batches]
    return Trace(lines.iso, lines.events, tuple(chunks))
