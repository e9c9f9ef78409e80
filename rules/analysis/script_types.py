"""The types of scripts and the Spark SQL types of columns (`eventscript.md` 1, Payload)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidegate.rules.eventscript.types import Array, Basic, Structure, Type

ERROR_FIELDS: Mapping[str, str] = {
    "kind": "string",
    "event": "string",
    "message": "string",
    "place": "string",
    "at": "timestamp",
}
"""The fields of `$error`."""

_SQL = {
    Basic.BOOLEAN: "boolean",
    Basic.LONG: "bigint",
    Basic.DOUBLE: "double",
    Basic.STRING: "string",
    Basic.TIME: "timestamp",
    Basic.OBJECT: "string",  # a column has to be of some type; a declared signal can say another
}
_INTEGERS = {"byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint"}
_DECIMALS = {"decimal", "dec", "numeric"}
_TAKES = {
    Basic.BOOLEAN: {"boolean"},
    Basic.LONG: _INTEGERS,
    Basic.DOUBLE: {*_INTEGERS, *_DECIMALS, "float", "real", "double"},
    Basic.STRING: {"string", "char", "character", "varchar"},
    Basic.TIME: {"timestamp", "timestamp_ltz", "timestamp_ntz", "date"},
}


def payload(kind: Type) -> dict[str, str]:
    """The columns of a value, with their types: its fields, else `value`."""
    if isinstance(kind, Structure):
        return {name: sql_of(of) for name, of in kind.fields}
    return {"value": sql_of(kind)}


def sql_of(kind: Type) -> str:
    """The Spark SQL type of a script's type."""
    if isinstance(kind, Array):
        return f"array<{sql_of(kind.of)}>"
    if isinstance(kind, Structure):
        return f"struct<{', '.join(f'{name}: {sql_of(of)}' for name, of in kind.fields)}>"
    return _SQL[kind]


def fits(kind: Type, sql: str) -> bool:
    """Whether a script's type takes the values of a column. Parts of arrays and structures are
    compared when their values come."""
    word = _word(sql)
    if isinstance(kind, Array):
        return word == "array"
    if isinstance(kind, Structure):
        return word == "struct"
    return kind == Basic.OBJECT or word in _TAKES[kind]


def is_decimal(sql: str) -> bool:
    return _word(sql) in _DECIMALS


def _word(sql: str) -> str:
    found = re.match(r"\s*(\w+)", sql)
    return found[1].lower() if found else ""
