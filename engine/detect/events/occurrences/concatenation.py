"""Carried occurrences before those that arrive: their columns one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.values import Batch
from tidegate.engine.detect.events.occurrences.comparison import KeyTypeError, united
from tidegate.rules.errors import InputError, Problem, word_place


def both(stored: Batch, new: Batch) -> Batch:
    """Carried occurrences before new ones; columns that one side lacks are null there."""
    depth = None
    if stored.depth is not None or new.depth is not None:
        depth = np.concatenate([_depth(stored), _depth(new)])
    place = None
    if stored.place is not None and new.place is not None:
        place = np.concatenate([stored.place, new.place])
    return Batch(
        new.event,
        np.concatenate([stored.time, new.time]),
        np.concatenate([stored.row, new.row + stored.table.num_rows]),
        _one_type(new.event, stored.table, new.table),
        {name: np.concatenate([stored.ids_by(name), ids]) for name, ids in new.ids.items()},
        depth,
        place,
    )


def _one_type(event: str, stored: pa.Table, new: pa.Table) -> pa.Table:
    """The carried parameters, then the new ones. A column may have got another type meanwhile."""
    tables = [stored, new]
    for name in {*stored.column_names} & {*new.column_names}:
        kinds = [table.schema.field(name).type for table in tables]
        if kinds[0] != kinds[1] and not any(map(pa.types.is_nested, kinds)):
            try:
                column = united([table.column(name) for table in tables])
            except KeyTypeError as error:
                shown = name.removeprefix("p:")
                message = f"column {shown} of {event} was {kinds[0]} and is {kinds[1]} now"
                hint = f"{error}; declare it as it was, or rename it"
                place = word_place("<occurrences>")
                raise InputError([Problem("column-type", message, place, hint)]) from None
            parts = column.slice(0, len(stored)), column.slice(len(stored))
            tables = [
                table.set_column(table.column_names.index(name), name, part)
                for table, part in zip(tables, parts, strict=True)
            ]
    return stack(tables)


def joined(event: str, tables: Sequence[pa.Table]) -> pa.Table:
    """The carried occurrences of one event type, which several steps have written. Their columns
    may differ in type, or be missing in some tables."""
    by_schema: list[pa.Table] = []
    for table in tables:
        if by_schema and by_schema[-1].schema == table.schema:
            by_schema[-1] = pa.concat_tables([by_schema[-1], table])
        else:
            by_schema.append(table)
    whole = by_schema[0]
    for table in by_schema[1:]:
        whole = _one_type(event, whole, table)
    ids = [name for name in whole.column_names if name.startswith("id:")]
    for name in ids:
        if whole.column(name).null_count:
            filled = pc.coalesce(*(whole.column(n) for n in (name, *ids)))
            whole = whole.set_column(whole.column_names.index(name), name, filled)
    return whole


def stack(tables: Iterable[pa.Table]) -> pa.Table:
    """Tables of parameters one after the other; the schema is the union of theirs."""
    parts = list(tables)
    if any(part.num_columns for part in parts):
        named = [p if p.num_columns else pa.table({"": pa.nulls(p.num_rows)}) for p in parts]
        stacked = pa.concat_tables(named, promote_options="permissive")
        return stacked.select([name for name in stacked.column_names if name])
    return no_parameters(sum(part.num_rows for part in parts))


def no_parameters(rows: int) -> pa.Table:
    """A table without columns, of `rows` rows."""
    return pa.table({"": pa.nulls(rows)}).select([])


def _depth(batch: Batch) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.zeros(len(batch), dtype=np.int32) if batch.depth is None else batch.depth
