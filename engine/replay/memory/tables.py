"""Tables in memory: their rows now, and the commits that made them, with their change data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.core.ports import FEED_KINDS, KIND
from tidegate.engine.core.types.spark import schema_json
from tidegate.engine.core.values import Writer

Bools = npt.NDArray[np.bool_]
_INSERT, _DELETE = FEED_KINDS["insert"], FEED_KINDS["delete"]
_BEFORE, _AFTER = FEED_KINDS["update_preimage"], FEED_KINDS["update_postimage"]


@dataclass(frozen=True, slots=True)
class MemoryCommit:
    """One version of a table. `changes`: the table's columns and KIND. `schema`: JSON, where the
    version has other columns than the one before. `writer`, `depth`: of the action that wrote
    it."""

    instant: int
    changes: pa.Table
    operation: str
    metrics: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    writer: Writer | None = None
    depth: int = 0

    @property
    def changes_rows(self) -> bool:
        """As Delta's log tells it: a MERGE that meets no row writes the rows into new files."""
        return bool(self.changes.num_rows) or self.operation == "MERGE"


@dataclass(frozen=True, slots=True)
class Edit:
    """Rows of a table that are changed: those at which `mask` is true get the values `set`."""

    mask: Bools
    set: Mapping[str, Any]


class MemoryTable:
    """A table: its `rows` now. Version n is commits[n]; version 0 is its first rows, `json` their
    schema."""

    def __init__(self, name: str, rows: pa.Table, instant: int) -> None:
        self.name, self.rows, self.json = name, rows, schema_json(rows.schema)
        first = _of_kind(_INSERT, rows)
        self.commits = [
            MemoryCommit(instant, first, "WRITE", _metrics("WRITE", inserted=len(rows)))
        ]

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return self.rows.schema

    @property
    def version(self) -> int:
        """The latest version."""
        return len(self.commits) - 1

    def commit(
        self, instant: int, inserted: pa.Table, updated: Sequence[Edit], deleted: Bools | None
    ) -> None:
        """One commit. `updated` and `deleted` are of the rows before it; what is updated is not
        deleted; `deleted` None: nothing is to be. As in Delta, an UPDATE or DELETE that meets no
        row leaves no commit; a load without rows does, and so does a MERGE where rows are there."""
        touched = np.zeros(self.rows.num_rows, np.bool_)
        after = self.rows
        for edit in updated:
            touched |= edit.mask
            after = _with(after, edit)
        gone = np.zeros_like(touched) if deleted is None else deleted & ~touched
        parts = [(_INSERT, inserted)]
        if touched.any():
            mask = pa.array(touched)
            parts += [(_BEFORE, self.rows.filter(mask)), (_AFTER, after.filter(mask))]
        if gone.any():
            parts.append((_DELETE, self.rows.filter(pa.array(gone))))
            after = after.filter(pa.array(~gone))
        changes = pa.concat_tables(_of_kind(kind, rows) for kind, rows in parts)
        operation = _operation(inserted, updated, deleted)
        writes = operation == "WRITE" or (operation == "MERGE" and self.rows.num_rows)
        if not (changes.num_rows or writes):
            return
        self.rows = pa.concat_tables([after, inserted]) if inserted.num_rows else after
        metrics = _metrics(
            operation, inserted=inserted.num_rows, updated=touched.sum(), deleted=gone.sum()
        )
        self.commits.append(MemoryCommit(instant, changes, operation, metrics))

    def widen(self, instant: int, added: pa.Schema) -> None:
        """One commit that adds columns. They are null in the rows that are there."""
        for field_ in added:
            self.rows = self.rows.append_column(field_, pa.nulls(self.rows.num_rows, field_.type))
        changes = _of_kind(_INSERT, self.rows.slice(0, 0))
        schema = schema_json(self.rows.schema)
        self.commits.append(MemoryCommit(instant, changes, "ADD COLUMNS", schema=schema))


def _with(rows: pa.Table, edit: Edit) -> pa.Table:
    index = np.arange(rows.num_rows)
    index[edit.mask] = rows.num_rows
    for name, value in edit.set.items():
        at = rows.schema.get_field_index(name)
        field = rows.schema.field(at)
        both = pa.chunked_array([*rows.column(at).chunks, pa.array([value], field.type)])
        rows = rows.set_column(at, field, both.take(pa.array(index)))
    return rows


def _of_kind(kind: int, rows: pa.Table) -> pa.Table:
    return rows.append_column(KIND, pa.array(np.full(rows.num_rows, kind, np.int64)))


_METRICS = {
    "WRITE": {"inserted": "numOutputRows"},
    "UPDATE": {"updated": "numUpdatedRows"},
    "DELETE": {"deleted": "numDeletedRows"},
    "MERGE": {
        "inserted": "numTargetRowsInserted",
        "updated": "numTargetRowsUpdated",
        "deleted": "numTargetRowsDeleted",
    },
}


def _operation(inserted: pa.Table, updated: Sequence[Edit], deleted: Bools | None) -> str:
    """The name that Delta gives to what is asked for, whatever rows it meets."""
    if not updated and deleted is None:
        return "WRITE"
    if inserted.num_rows or (updated and deleted is not None):
        return "MERGE"
    return "UPDATE" if updated else "DELETE"


def _metrics(operation: str, **counts: int) -> Mapping[str, str]:
    """The metrics of a commit that tell of so many rows."""
    return {name: str(counts[of]) for of, name in _METRICS[operation].items()}
