"""Schemas of tables across commits: what may change under a running rulebook (G12)."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from tidegate.rules.errors import EngineError


def same_schema(before: str, after: str) -> bool:
    """Whether two schemas, as JSON, have the same columns of the same types, in any order."""
    return before == after or _columns(before) == _columns(after)


def covers(known: str | None, schema: str) -> bool:
    """Whether a known schema has every column of `schema`, with the same type. Both are JSON."""
    if known is None or known == schema:
        return known is not None
    columns = _columns(known)
    return all(columns.get(name) == kind for name, kind in _columns(schema).items())


def check_schema(table: str, version: int, before: str, after: str, used: Collection[str]) -> None:
    """Raise EngineError `schema-incompatible` if a commit dropped, renamed or retyped a used
    column. Added columns and changes of unused ones do not matter."""
    old, new = _columns(before), _columns(after)
    for name in sorted(used):
        column = name.lower()
        if column not in old or old[column] == new.get(column):
            continue
        if column not in new:
            what = f"drops or renames column `{name}`"
        else:
            what = f"changes column `{name}` from {_text(old[column])} to {_text(new[column])}"
        raise EngineError(
            "schema-incompatible",
            f"table `{table}`: version {version} {what}, which the rulebook uses",
            f"change the rulebook, then go on with `tidegate reset {table} --from {version}` "
            "(what that version and later ones hold are new occurrences) or `--from now`",
        )


def _columns(schema: str) -> dict[str, Any]:
    """(type, column-mapping id) by lower-case name. Another id is another column."""
    return {
        field["name"].lower(): (
            field["type"],
            field.get("metadata", {}).get("delta.columnMapping.id"),
        )
        for field in json.loads(schema)["fields"]
    }


def _text(column: Any) -> str:
    kind = column[0]
    return kind if isinstance(kind, str) else json.dumps(kind)
