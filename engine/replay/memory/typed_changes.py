"""What one commit does to a table, typed by the table's schema, and decided over its rows.

Example: `update: {where: id = 7, set: {balance: 0}}` over a table whose `balance` is a decimal: the
value is Decimal(0), the mask is true at the rows whose `id` is 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.engine.replay.cases.model import Delete, Row, TableChange, Update
from tidegate.engine.replay.cases.rows import typed_rows
from tidegate.engine.replay.memory.predicates import rows_where
from tidegate.engine.replay.memory.tables import Bools, Edit
from tidegate.rules.errors import Place


@dataclass(frozen=True, slots=True)
class TypedChange:
    """A `TableChange` with typed rows and values. `updates`: each with its values by column.
    `added`: new columns; then there is nothing else. `place`: where the test file says it."""

    inserted: pa.Table
    updates: Sequence[tuple[Update, Mapping[str, Any]]]
    deletes: Sequence[Delete]
    added: pa.Schema
    place: Place

    def decided(self, rows: pa.Table) -> tuple[list[Edit], Bools | None]:
        """The rows of a table that are updated, and those that are deleted; None if none are to be.
        Raises InputError where a predicate raises on one of them, EngineError `needs-spark`."""
        edits = [Edit(rows_where(rows, one.where, one.place), new) for one, new in self.updates]
        masks = [rows_where(rows, one.where, one.place) for one in self.deletes]
        return edits, np.logical_or.reduce(masks) if masks else None


def typed_change(
    given: TableChange, schema: pa.Schema, defaults: Row, timezone: str
) -> TypedChange:
    """A change of a table with this schema. `defaults`: of the columns that an inserted row leaves
    out. Raises InputError with each value that does not fit."""
    updates = []
    for update in given.updates:
        columns = pa.schema([schema.field(name) for name in update.set])
        [values] = typed_rows([update.set], columns, {}, timezone).to_pylist()
        updates.append((update, values))
    inserted = typed_rows(given.inserts, schema, defaults, timezone)
    return TypedChange(inserted, updates, given.deletes, given.added, given.place)
