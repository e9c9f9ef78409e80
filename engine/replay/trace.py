"""Reading a trace: JSON lines -> tables of occurrences in order of time, in bounded memory:
tables sorted by time are kept on disk and read back piece by piece."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import Int64
from tidegate.engine.replay.changes import ChangeLines, Schemas
from tidegate.engine.replay.json_values import LINE, TIME, common, typed
from tidegate.engine.replay.line_counts import LineCounts
from tidegate.engine.replay.lines import LAST, Lines, key_fields
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
    spool         the tables on disk, if one table is not enough
    seen          what the pass over the lines has counted
    changes       what the lines that are changes have shown
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
    changes: ChangeLines

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
    schemas: Schemas = lambda _: None,
) -> Trace:
    """Read and check a whole trace; lines after `until` are skipped. A long one is kept in files
    in `folder`. `schemas`: of tables whose changes are lines. Raises `InputError` with the lines
    that are wrong."""
    changes = ChangeLines(book, folder, schemas)
    lines = Lines(path, book, until, progress, changes)
    types: dict[str, set[pa.DataType]] = {name: set() for name in key_fields(book)}
    spool = Spool(folder)
    earliest, count = LAST, 0
    chunk: list[pa.Table] = []
    for block in _uncollected(lines.blocks()):
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
        changes,
    )


def _uncollected(blocks: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The blocks, without the collector of garbage: it would look at each row of them in vain."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield from blocks
    finally:
        if enabled:
            gc.enable()


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


class Spool:
    """Sorted runs of rows, each in a file of `folder`, in pieces. Only the first instants of the
    pieces are in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs: list[tuple[str, list[int]]] = []

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, table: pa.Table) -> None:
        """Keep a run: a table in order of time, which is not empty."""
        path, rows = str(self._folder / f"{len(self)}.arrow"), -(-len(table) // PIECES)
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table.combine_chunks(), max_chunksize=rows)
        self._runs.append((path, times(table)[::rows].tolist()))

    def windows(self) -> Iterator[list[pa.Table]]:
        """Everything in order of time, about as much as a run at a time: parts of runs, each in
        order of time, and no instant in two windows."""
        edges = np.unique(np.sort([t for _, firsts in self._runs for t in firsts])[::PIECES])[1:]
        runs = [_Run(pa.ipc.open_file(pa.OSFile(path)), firsts) for path, firsts in self._runs]
        for edge in [*edges.tolist(), None]:
            parts = [part for run in runs for part in run.before(edge)]
            if parts:
                yield parts


class _Run:
    """The reading of one run. `firsts`: the first instant of each of its pieces."""

    def __init__(self, file: pa.ipc.RecordBatchFileReader, firsts: list[int]) -> None:
        self._file = file
        self._coming = [*enumerate(firsts)][::-1]
        self._left: pa.Table | None = None

    def before(self, edge: int | None) -> Iterator[pa.Table]:
        """The rows up to an instant that have not been read; None: all."""
        while self._left or (self._coming and (edge is None or self._coming[-1][1] < edge)):
            table = self._left or self._next()
            count = len(table) if edge is None else int(np.searchsorted(times(table), edge))
            if count:
                yield table.slice(0, count)
            self._left = table.slice(count) if count < len(table) else None
            if self._left:
                return

    def _next(self) -> pa.Table:
        number, _ = self._coming.pop()
        return pa.Table.from_batches([self._file.get_batch(number)])


def times(table: pa.Table) -> Int64:
    """The instants of a table's rows."""
    column: Int64 = table.column(TIME).to_numpy()
    return column
