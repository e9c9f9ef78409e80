"""Spark types as Arrow types, without Spark: from DDL text and from a schema's JSON.

The Arrow types are those that Spark itself sends: timestamps in microseconds, UTC.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidegate.rules.sql.types import fields, precision_and_scale, type_tree

if TYPE_CHECKING:
    from sqlglot import exp

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
_NAMES = {kind: name for name, kind in reversed(_PLAIN.items())}  # the first name of each

_JSON_NAMES = {  # where a schema's JSON has other names than DDL
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
}

_SAME = {  # the names of sqlglot's types, where Spark's are others
    **dict.fromkeys(("text", "char", "varchar"), "string"),
    "timestamptz": "timestamp",
    "timestampltz": "timestamp",
    "timestampntz": "timestamp_ntz",
}


def arrow_type(ddl: str) -> pa.DataType:
    """The Arrow type of a Spark type as written in DDL (`decimal(12,2)`, `array<struct<a: int>>`).

    Raises ValueError if the text is not such a type.
    """
    plain = _PLAIN.get(ddl.strip().lower())
    return _arrow(type_tree(ddl)) if plain is None else plain


def spark_type(kind: pa.DataType) -> str:
    """The DDL of a type: the inverse of `arrow_type`."""
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

    Columns of a type that Arrow does not have (variant, geometry) are left out. No rule reads them.
    """
    fields = []
    for column in json.loads(schema_json)["fields"]:
        try:
            fields.append(pa.field(column["name"], _json_type(column["type"])))
        except ValueError:
            continue
    return pa.schema(fields)


def schema_json(schema: pa.Schema) -> str:
    """The JSON of a schema: the inverse of `arrow_schema`."""
    return json.dumps(_struct_json(schema))


def plain_columns(schema_json: str) -> frozenset[str]:
    """The columns whose values compare byte by byte: all but `char(n)` and those with a
    collation."""
    return frozenset(
        column["name"]
        for column in json.loads(schema_json)["fields"]
        if "__COLLATIONS" not in column.get("metadata", {})
        and not column.get("metadata", {}).get("__CHAR_VARCHAR_TYPE_STRING", "").startswith("char")
        and "collate" not in str(column["type"])
    )


def _arrow(tree: exp.DataType) -> pa.DataType:
    kind = tree.this.value.lower()
    if kind == "decimal":
        return pa.decimal128(*precision_and_scale(tree))
    if kind == "array":
        return pa.list_(_arrow(tree.expressions[0]))
    if kind == "map":
        return pa.map_(*map(_arrow, tree.expressions))
    if kind == "struct":
        return pa.struct([pa.field(name, _arrow(part)) for name, part in fields(tree)])
    return _PLAIN[_SAME.get(kind, kind)]


def _struct_json(fields: Iterable[pa.Field]) -> dict[str, Any]:
    columns = [
        {"name": f.name, "type": _type_json(f.type), "nullable": True, "metadata": {}}
        for f in fields
    ]
    return {"type": "struct", "fields": columns}


def _type_json(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return _struct_json(kind)
    if pa.types.is_list(kind):
        item = _type_json(kind.value_type)
        return {"type": "array", "elementType": item, "containsNull": True}
    if pa.types.is_map(kind):
        key, value = _type_json(kind.key_type), _type_json(kind.item_type)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    return _JSON_NAMES.get(kind) or spark_type(kind)


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
