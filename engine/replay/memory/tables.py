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
    """One version of a table. `changes`: the table's columns and KIND. `writer`, `depth`: of the
    action that wrote it."""

    instant: int
    changes: pa.Table
    operation: str
    metrics: Mapping[str, str] = field(default_factory=dict)
    writer: Writer | None = None
    depth: int = 0

    @property
    def changes_rows(self) -> bool:
        return bool(self.changes.num_rows)


@dataclass(frozen=True, slots=True)
class Edit:
    """Rows of a table that are changed: those at which `mask` is true get the values `set`."""

    mask: Bools
    set: Mapping[str, Any]


class MemoryTable:
    """A table: its `rows` now. Version n is commits[n]; version 0 is its first rows."""

    def __init__(self, name: str, rows: pa.Table, instant: int) -> None:
        self.name, self.rows, self.json = name, rows, schema_json(rows.schema)
        first = _of_kind(_INSERT, rows)
        self.commits = [MemoryCommit(instant, first, *_operation({"inserted": len(rows)}))]

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return self.rows.schema

    @property
    def version(self) -> int:
        """The latest version."""
        return len(self.commits) - 1

    def commit(
        self,
        instant: int,
        inserted: pa.Table,
        updated: Sequence[Edit],
        deleted: Bools,
        *,
        writes: bool = False,
    ) -> None:
        """One commit. `updated` and `deleted` are of the rows before it; what is updated is not
        deleted. An UPDATE or DELETE that meets no row leaves no commit, as in Delta; a load without
        rows does (`writes`)."""
        touched = np.zeros(self.rows.num_rows, np.bool_)
        after = self.rows
        for edit in updated:
            touched |= edit.mask
            after = _with(after, edit)
        gone = deleted & ~touched
        parts = [(_INSERT, inserted)]
        if touched.any():
            mask = pa.array(touched)
            parts += [(_BEFORE, self.rows.filter(mask)), (_AFTER, after.filter(mask))]
        if gone.any():
            parts.append((_DELETE, self.rows.filter(pa.array(gone))))
            after = after.filter(pa.array(~gone))
        changes = pa.concat_tables(_of_kind(kind, rows) for kind, rows in parts)
        if not (changes.num_rows or writes):
            return
        self.rows = pa.concat_tables([after, inserted]) if inserted.num_rows else after
        counts = {"inserted": inserted.num_rows, "updated": touched.sum(), "deleted": gone.sum()}
        self.commits.append(MemoryCommit(instant, changes, *_operation(counts)))


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


_NAMES = {"inserted": "WRITE", "updated": "UPDATE", "deleted": "DELETE"}
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


def _operation(counts: Mapping[str, int]) -> tuple[str, Mapping[str, str]]:
    """The name and the metrics that Delta would give a commit of so many rows."""
    some = [name for name, count in counts.items() if count] or ["inserted"]
    operation = _NAMES[some[0]] if len(some) == 1 else "MERGE"
    return operation, {name: str(counts[of]) for of, name in _METRICS[operation].items()}
