"""Batches cut to some of their occurrences, and put together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidegate.engine.core.columns.hashing import count_equal
from tidegate.engine.core.values import Batch, Int64
from tidegate.engine.detect.events.kernels import table_rows
from tidegate.engine.detect.events.occurrences.concatenation import no_parameters, stack


def numbered(batches: Mapping[str, Batch]) -> dict[str, Batch]:
    """Batches that say what tells each occurrence from the simultaneous ones of its type: so it is
    the same in each part that they are cut into."""
    return {
        event: batch
        if batch.number is not None
        else replace(batch, number=table_rows.among_simultaneous(batch.time, np.arange(len(batch))))
        for event, batch in batches.items()
    }


def cut(batches: Mapping[str, Batch], index: Mapping[str, Int64]) -> dict[str, Batch]:
    """The occurrences at index[event], which ascends, with tables of their rows alone. Event types
    that share a table still do."""
    taken = {event: batch.take(index[event]) for event, batch in batches.items()}
    tables = {id(batch.table): batch.table for batch in taken.values()}
    rows: dict[int, list[Int64]] = {name: [] for name in tables}
    for batch in taken.values():
        rows[id(batch.table)].append(batch.row)
    kept = {name: np.unique(np.concatenate(parts)) for name, parts in rows.items()}
    small = {name: _rows(table, kept[name]) for name, table in tables.items()}
    return {
        event: replace(
            batch,
            row=np.searchsorted(kept[id(batch.table)], batch.row),
            table=small[id(batch.table)],
        )
        for event, batch in taken.items()
    }


def _rows(table: pa.Table, row: Int64) -> pa.Table:
    return table.take(row).combine_chunks() if table.num_columns else no_parameters(len(row))


def merged(parts: Sequence[Batch]) -> tuple[Batch, list[Int64]]:
    """Several batches of one event type as one, in order of time, and for each of them the places
    of its occurrences in that."""
    time = np.concatenate([part.time for part in parts])
    order = np.argsort(time, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    first = np.cumsum([0, *(part.table.num_rows for part in parts)])
    row = np.concatenate([part.row + begin for part, begin in zip(parts, first, strict=False)])
    names = dict.fromkeys(name for part in parts for name in part.ids)
    ids = {name: np.concatenate([part.ids_by(name) for part in parts])[order] for name in names}
    depth = None
    if any(part.depth is not None for part in parts):
        depth = np.concatenate([part.depths for part in parts])[order]
    table = stack(part.table for part in parts)
    whole = Batch(parts[0].event, time[order], row[order], table, ids, depth)
    return whole, np.split(place, np.cumsum([len(part) for part in parts])[:-1])


def together(parts: Sequence[Batch]) -> Batch:
    """Several numbered batches of one event type as one, in order of time and number."""
    whole, places = merged(parts)
    number = np.empty(len(whole), np.int64)
    for part, place in zip(parts, places, strict=True):
        number[place] = [] if part.number is None else part.number
    return replace(whole, number=number).take(np.lexsort((number, whole.time)))


def with_read(
    given: Mapping[str, Batch], read: Sequence[Mapping[str, Batch]], watermark: int
) -> dict[str, Batch]:
    """Batches beside those of other names whose parts were captured apart; these up to a watermark.
    Equal rows meet here, and their ids are made distinct."""
    found = dict(given)
    for name in sorted({name for part in read for name in part}):
        if name in given and len(given[name]):
            raise ValueError(f"{name} was read both here and by the driver")
        whole = together([part[name] for part in read if name in part])
        ids = {columns: count_equal(hashes) for columns, hashes in whole.ids.items()}
        found[name] = replace(whole, ids=ids).until(watermark)
    return found
