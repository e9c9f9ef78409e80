"""Written rows as tables of Arrow: each value as the type of its column has it.

Example: with `amount decimal(12,2)`, `{account_id: 7, amount: 400}` has the amount 400.00.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pyarrow as pa

from tidegate.engine.core.text.times import of_text
from tidegate.engine.core.types.fields import MisfitError, part_of
from tidegate.engine.core.types.spark import arrow_type, spark_type
from tidegate.engine.replay.cases.model import Row, Written
from tidegate.rules.errors import InputError, Place, Problem, did_you_mean
from tidegate.rules.model import SignalEvent

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP = pa.timestamp("us", "UTC")
_conversion = cache(part_of)


def typed_rows(rows: Sequence[Row], schema: pa.Schema, defaults: Row, zone: str) -> pa.Table:
    """The rows as a table of this schema. What a row leaves out is as in `defaults`, else null.

    A timestamp without an offset is in `zone`, the rulebook's. Raises InputError with a problem for
    each value that does not fit, and for each column that the schema does not have.
    """
    problems = misfits(rows, schema, zone)
    if problems:
        raise InputError(problems)
    columns = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        absent = typed_value(defaults[name], kind, zone) if name in defaults else None
        values = [typed_value(row[name], kind, zone) if name in row else absent for row in rows]
        columns.append(pa.array(values, kind))
    return pa.Table.from_arrays(columns, schema=schema)


def typed_value(written: Written, kind: pa.DataType, zone: str) -> Any:
    """One value, as Arrow takes it for a type. Raises MisfitError."""
    value = _zoned(written.value, kind, zone) if _has_times(kind) else written.value
    return _conversion(kind)(value, "")


def misfits(rows: Sequence[Row], schema: pa.Schema, zone: str) -> list[Problem]:
    """The problems of rows that are to fit a schema. Columns may be left out."""
    kinds = dict(zip(schema.names, schema.types, strict=True))
    problems = []
    for row in rows:
        for name, written in row.items():
            if name not in kinds:
                problems.append(unknown_column(name, written.place, kinds))
                continue
            try:
                typed_value(written, kinds[name], zone)
            except MisfitError as error:
                message = f"column `{name}{error.path}` {error.said}"
                hint = _quoted(written.value, kinds[name])
                problems.append(Problem("column-type", message, written.place, hint))
    return problems


def unknown_column(name: str, place: Place, known: Mapping[str, Any]) -> Problem:
    """The problem of a column that a schema does not have."""
    hint = did_you_mean(name, known) or "declare its table's columns: schemas:"
    return Problem("unknown-column", f"there is no column `{name}`", place, hint)


def widened(schema: pa.Schema, added: pa.Schema) -> pa.Schema:
    """The schema with columns that are added behind its own."""
    return pa.schema([*schema, *added])


def signal_schema(event: SignalEvent) -> pa.Schema:
    """The fields that a signal declares, as columns."""
    return pa.schema([(name, arrow_type(ddl)) for name, ddl in event.fields.items()])


def _quoted(value: Any, kind: pa.DataType) -> str:
    """The remedy for a number or boolean where a text is expected."""
    if isinstance(value, bool | int | float) and pa.types.is_string(kind):
        return f'quote it: "{str(value).lower() if isinstance(value, bool) else value}"'
    return f"write a value of the type {spark_type(kind)}"


@cache
def _has_times(kind: pa.DataType) -> bool:
    parts = [kind.field(n).type for n in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    return kind == _TIMESTAMP or any(map(_has_times, parts))


def _zoned(value: Any, kind: pa.DataType, zone: str) -> Any:
    """The value, and in it timestamps without an offset as those of a zone."""
    if isinstance(value, str) and kind == _TIMESTAMP:
        try:
            return _EPOCH + timedelta(microseconds=of_text(value, zone))
        except (ValueError, OverflowError):
            return value
    if isinstance(value, list) and pa.types.is_list(kind):
        return [_zoned(item, kind.value_type, zone) for item in value]
    if isinstance(value, dict) and pa.types.is_map(kind):
        return {name: _zoned(item, kind.item_type, zone) for name, item in value.items()}
    if isinstance(value, dict) and pa.types.is_struct(kind):
        kinds = {field.name: field.type for field in kind}
        return {n: _zoned(item, kinds.get(n, pa.null()), zone) for n, item in value.items()}
    return value
