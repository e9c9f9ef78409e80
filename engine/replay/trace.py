"""Reading a trace: JSON lines -> tables of occurrences in order of time, in bounded memory:
tables sorted by time are kept on disk and read back piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import Int64
from tidegate.engine.replay.json_values import LINE, TIME, common, typed
from tidegate.engine.replay.lines import LAST, LineCounts, Lines, key_fields
from tidegate.rules.model import Rulebook

CHUNK_LINES = 200_000
CHUNK_BYTES = 64 << 20
PIECES = 64


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that has been read and found right.

    Its tables have a row for each occurrence, with the columns of `json_values`: `EVENT` (a code of
    `events`), `TIME`, `LINE`, and the key fields by name.

    first, last   the instants of the first and the last line; None without lines
    earliest      the instant of the first occurrence
    count         the number of occurrences
    iso           whether the lines have ISO 8601 times
    spool         the file with the tables, if one table is not enough
    seen          what the pass over the lines has counted
    """

    iso: bool
    events: tuple[str, ...]
    first: int | None
    last: int | None
    earliest: int
    count: int
    key_types: dict[str, pa.DataType]
    table: pa.Table | None
    spool: Spool
    seen: LineCounts

    def windows(self) -> Iterator[pa.Table]:
        """All occurrences in order of time, about a chunk at a time, no instant in two windows.
        Simultaneous ones keep the order of the lines."""
        parts = self.spool.windows() if len(self.spool) else [[self.table]] if self.table else []
        for tables in parts:
            yield _in_order(pa.concat_tables([typed(t, self.key_types) for t in tables]))


def read(
    path: Path,
    book: Rulebook,
    until: int | None,
    folder: Path,
    progress: Callable[[int], None] = lambda _: None,
) -> Trace:
    """Read and check a whole trace; lines after `until` are skipped. A long one is kept in a file
    in `folder`. Raises `InputError` with the lines that are wrong."""
    lines = Lines(path, book, until, progress)
    types: dict[str, set[pa.DataType]] = {name: set() for name in key_fields(book)}
    spool = Spool(folder)
    earliest, count = LAST, 0
    chunk: list[pa.Table] = []
    for block in lines.blocks():
        if not block:
            continue
        count += len(block)
        earliest = min(earliest, int(times(block).min()))
        for name, known in types.items():
            known.add(block.schema.field(name).type)
        chunk.append(block)
        if _full(chunk):
            spool.add(_merged(chunk))
            chunk = []
    table = _merged(chunk) if chunk else None
    if table is not None and len(spool):
        spool.add(table)
    compared = key_fields(book)  # with one another, whatever the name
    wanted = {n: common(set().union(*(types[m] for m in compared[n]))) for n in types}
    return Trace(
        lines.iso,
        lines.events,
        lines.first,
        lines.last,
        earliest,
        count,
        wanted,
        table,
        spool,
        lines.seen,
    )


def _full(chunk: list[pa.Table]) -> bool:
    size = sum(block.column(LINE).nbytes for block in chunk)
    return sum(map(len, chunk)) >= CHUNK_LINES or size >= CHUNK_BYTES


def _merged(chunk: list[pa.Table]) -> pa.Table:
    """Blocks as one table in order of time."""
    names = chunk[0].column_names
    types = {name: common(block.schema.field(name).type for block in chunk) for name in names}
    return _in_order(pa.concat_tables([typed(block, types) for block in chunk]))


def _in_order(table: pa.Table) -> pa.Table:
    time = times(table)
    if (time[1:] >= time[:-1]).all():
        return table
    return table.take(pa.array(np.argsort(time, kind="stable")))


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows that follow one another: their first instant, where their bytes are."""

    first: int
    offset: int
    size: int


class Spool:
    """Sorted runs of rows in one file of `folder`. Only the place of each piece is in memory."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "trace.arrow"
        self._runs: list[tuple[pa.Schema, list[_Piece]]] = []
        self._end = 0

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, table: pa.Table) -> None:
        """Keep a run: a table in order of time, which is not empty."""
        table = table.combine_chunks()
        pieces = []
        with self._path.open("ab") as file:
            rows = -(-len(table) // PIECES)
            for batch in table.to_batches(max_chunksize=rows):
                raw = batch.serialize()
                file.write(raw)
                pieces.append(_Piece(int(batch.column(TIME)[0].as_py()), self._end, raw.size))
                self._end += raw.size
        self._runs.append((table.schema, pieces))

    def windows(self) -> Iterator[list[pa.Table]]:
        """Everything in order of time, about as much as a run at a time: parts of runs, each in
        order of time, and no instant in two windows."""
        firsts = np.sort([piece.first for _, pieces in self._runs for piece in pieces])
        edges = np.unique(firsts[::PIECES])[1:].tolist()
        with self._path.open("rb") as file:
            runs = [_Run(file, schema, pieces) for schema, pieces in self._runs]
            for edge in [*edges, None]:
                parts = [part for run in runs for part in run.before(edge)]
                if parts:
                    yield parts


class _Run:
    """The reading of one run."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, pieces: list[_Piece]) -> None:
        self._file = file
        self._schema = schema
        self._coming = pieces[::-1]
        self._left: pa.Table | None = None

    def before(self, edge: int | None) -> Iterator[pa.Table]:
        """The rows up to an instant that have not been read; None: all."""
        while self._left or (self._coming and (edge is None or self._coming[-1].first < edge)):
            table = self._left or self._read(self._coming.pop())
            count = len(table) if edge is None else int(np.searchsorted(times(table), edge))
            if count:
                yield table.slice(0, count)
            self._left = table.slice(count) if count < len(table) else None
            if self._left:
                return

    def _read(self, piece: _Piece) -> pa.Table:
        self._file.seek(piece.offset)
        raw = pa.py_buffer(self._file.read(piece.size))
        return pa.Table.from_batches([pa.ipc.read_record_batch(raw, self._schema)])


def times(table: pa.Table) -> Int64:
    """The instants of a table's rows."""
    column: Int64 = table.column(TIME).to_numpy()
    return column
