"""Values as SQL texts, and the one statement that changes rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

import pyarrow as pa

from tidegate.connectors.delta.catalog import quoted
from tidegate.engine.core.types.spark import spark_type

Edit = tuple[str, Mapping[str, str]]
"""A predicate, and by column the SQL of its new value."""


def change(target: str, source: str | None, edits: Sequence[Edit], deletes: Sequence[str]) -> str:
    """The statement that inserts the rows of `source`, and updates and deletes rows that stand in
    `target` before it. A row that is updated is not deleted; of several updates of a column the
    last one wins. `target`, `source`: as SQL names them.

    Example: `MERGE INTO t USING s ON false WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY
    SOURCE AND (id = 3) THEN DELETE`.
    """
    gone = " OR ".join(map(_in_brackets, deletes))
    changed = " OR ".join(_in_brackets(where) for where, _ in edits)
    values = ", ".join(f"{name} = {value}" for name, value in _assigned(edits).items())
    if source is None and not edits:
        # Without an alias, WHERE (true) would be one.
        return f"DELETE FROM {target} AS {target} WHERE {gone}"  # noqa: S608, of a test
    if source is None and not deletes:
        return f"UPDATE {target} SET {values} WHERE {changed}"  # noqa: S608
    text = f"MERGE INTO {target} USING {source or '(SELECT 1 AS _tidegate)'} ON false"
    if source is not None:
        text += " WHEN NOT MATCHED THEN INSERT *"
    if edits:
        text += f" WHEN NOT MATCHED BY SOURCE AND ({changed}) THEN UPDATE SET {values}"
    if deletes:
        text += f" WHEN NOT MATCHED BY SOURCE AND ({gone}) THEN DELETE"
    return text


def _assigned(edits: Sequence[Edit]) -> Mapping[str, str]:
    """By column, its new value in the rows that any of the predicates is true of."""
    if len(edits) == 1:
        return {quoted(column): value for column, value in edits[0][1].items()}
    found: dict[str, str] = {}
    for where, values in edits:  # the last one is asked first
        for column, value in values.items():
            name = quoted(column)
            kept = found.get(name, name)
            found[name] = f"CASE WHEN {_in_brackets(where)} THEN {value} ELSE {kept} END"
    return found


def _in_brackets(where: str) -> str:
    return f"({where}\n)"  # the line's end closes a comment


def literal(value: Any, kind: pa.DataType) -> str:
    """A value of a type as SQL. `value`: as Arrow gives it to Python."""
    return f"CAST({_bare(value, kind)} AS {spark_type(kind)})"


def _bare(value: Any, kind: pa.DataType) -> str:
    if value is None:
        return "NULL"
    if pa.types.is_list(kind):
        return f"array({', '.join(literal(one, kind.value_type) for one in value)})"
    if pa.types.is_map(kind):
        pairs = (f"{literal(k, kind.key_type)}, {literal(v, kind.item_type)}" for k, v in value)
        return f"map({', '.join(pairs)})"
    if pa.types.is_struct(kind):
        fields = (f"{_text(f.name)}, {literal(value[f.name], f.type)}" for f in kind)
        return f"named_struct({', '.join(fields)})"
    if pa.types.is_binary(kind):
        return f"X'{value.hex()}'"
    if pa.types.is_timestamp(kind):
        return _text(value.astimezone(UTC).isoformat() if kind.tz else value.isoformat())
    return _text(str(value))


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
