"""Spark types as Arrow types, without Spark: from DDL text and from a schema's JSON.

The Arrow types are those that Spark itself sends: timestamps in microseconds, UTC.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

_PLAIN: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
_NAMES = {
    kind: name
    for name, kind in _PLAIN.items()
    if name not in ("byte", "short", "integer", "long", "real", "timestamp_ltz")
}
_TOKEN = re.compile(r"\s*(`[^`]*`|\w+|[<>(),:])")


def arrow_type(ddl: str) -> pa.DataType:
    """The Arrow type of a Spark type as written in DDL (`decimal(12,2)`, `array<struct<a: int>>`).

    Raises ValueError if the text is not such a type.
    """
    tokens = _tokens(ddl)
    kind = _parse_type(tokens)
    if tokens:
        raise ValueError(f"{''.join(tokens)!r} stands after the type")
    return kind


def spark_type(kind: pa.DataType) -> str:
    """A type of `arrow_type` as Spark's DDL has it."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_type(kind.key_type)},{spark_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{f.name}: {spark_type(f.type)}' for f in kind)}>"
    return _NAMES[kind]


def arrow_schema(schema_json: str) -> pa.Schema:
    """The Arrow schema of a Spark schema's JSON (`schemaString` in a Delta log).

    Columns of a type that Arrow has not (variant, geometry) are left out: no rule can read them.
    """
    fields = []
    for column in json.loads(schema_json)["fields"]:
        try:
            fields.append(pa.field(column["name"], _json_type(column["type"])))
        except ValueError:
            continue
    return pa.schema(fields)


def plain_columns(schema_json: str) -> frozenset[str]:
    """Names of the columns whose values compare byte by byte: not `char(n)`, no collation."""
    return frozenset(
        column["name"]
        for column in json.loads(schema_json)["fields"]
        if "__COLLATIONS" not in column.get("metadata", {})
        and not column.get("metadata", {}).get("__CHAR_VARCHAR_TYPE_STRING", "").startswith("char")
        and "collate" not in str(column["type"])
    )


def _tokens(ddl: str) -> list[str]:
    tokens, at = [], 0
    text = ddl.rstrip()
    while at < len(text):
        if not (match := _TOKEN.match(text, at)):
            raise ValueError(f"{text[at:]!r} is not part of a Spark type")
        tokens.append(match[1])
        at = match.end()
    return tokens


def _parse_type(tokens: list[str]) -> pa.DataType:
    name = _take(tokens).lower()
    if name == "decimal" or name in ("dec", "numeric"):
        return _decimal(_arguments(tokens) or [10, 0])
    if name in ("char", "varchar"):
        _arguments(tokens)
        return pa.string()
    if name == "array":
        _take(tokens, "<")
        item = _parse_type(tokens)
        _take(tokens, ">")
        return pa.list_(item)
    if name == "map":
        _take(tokens, "<")
        key = _parse_type(tokens)
        _take(tokens, ",")
        value = _parse_type(tokens)
        _take(tokens, ">")
        return pa.map_(key, value)
    if name == "struct":
        return _parse_struct(tokens)
    if name not in _PLAIN:
        raise ValueError(f"{name!r} is not a Spark type")
    return _PLAIN[name]


def _parse_struct(tokens: list[str]) -> pa.DataType:
    fields: list[pa.Field] = []
    _take(tokens, "<")
    while tokens[:1] != [">"]:
        if fields:
            _take(tokens, ",")
        name = _take(tokens).strip("`")
        if tokens[:1] == [":"]:
            _take(tokens)
        fields.append(pa.field(name, _parse_type(tokens)))
    _take(tokens, ">")
    return pa.struct(fields)


def _arguments(tokens: list[str]) -> list[int]:
    numbers: list[int] = []
    if tokens[:1] == ["("]:
        _take(tokens)
        while tokens[:1] != [")"]:
            if numbers:
                _take(tokens, ",")
            numbers.append(int(_take(tokens)))
        _take(tokens)
    return numbers


def _decimal(arguments: list[int]) -> pa.DataType:
    precision, scale = (*arguments, 0)[:2]
    if not (1 <= precision <= 38 and 0 <= scale <= precision):
        raise ValueError(f"decimal({precision},{scale}) is not a Spark type")
    return pa.decimal128(precision, scale)


def _take(tokens: list[str], expected: str | None = None) -> str:
    if not tokens or (expected is not None and tokens[0] != expected):
        found = repr(tokens[0]) if tokens else "the end"
        raise ValueError(f"{expected or 'a type'} was expected, but there is {found}")
    return tokens.pop(0)


def _json_type(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        return arrow_type(kind.split(" collate ")[0])
    if kind["type"] == "struct":
        return pa.struct([pa.field(f["name"], _json_type(f["type"])) for f in kind["fields"]])
    if kind["type"] == "array":
        return pa.list_(_json_type(kind["elementType"]))
    if kind["type"] == "map":
        return pa.map_(_json_type(kind["keyType"]), _json_type(kind["valueType"]))
    return _json_type(kind["sqlType"])  # a user-defined type is what it is stored as
