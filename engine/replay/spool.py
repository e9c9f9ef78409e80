"""Tables sorted by time, kept on disk, read back piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import Int64
from tidegate.engine.replay.json_values import TIME

PIECES = 64


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows that follow one another: their first instant, where their bytes are."""

    first: int
    offset: int
    size: int


class Spool:
    """Sorted runs of rows in one file of `folder`; in memory there is where each piece begins."""

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
