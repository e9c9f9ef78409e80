"""Reading a trace: JSON lines -> tables of occurrences in order of time, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidegate.engine.replay.json_values import LINE, common, typed
from tidegate.engine.replay.lines import LAST, Lines, Seen, key_fields
from tidegate.engine.replay.spool import Spool, times
from tidegate.rules.model import Rulebook

CHUNK_LINES = 200_000
CHUNK_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace that has been read and found right.

    Its tables have, of each line, the columns of `json_values`: `EVENT` (a code of `events`),
    `TIME`, `LINE`, and the key fields by name. `first`, `last`: the instants of the first and the
    last line, None without lines; `earliest`: that of the first occurrence; `count`: how many there
    are; `iso`: their times are ISO 8601. What does not fit into one table is in `spool`; `seen`
    counts lines.
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
    seen: Seen

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
