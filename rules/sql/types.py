"""Spark SQL type names, as the fields of explicit event types declare them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from tidegate.rules.errors import nearest
from tidegate.rules.sql.tokens import spark_dialect

if TYPE_CHECKING:
    from sqlglot import exp

# fmt: off
PLAIN = {
    "boolean", "byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint", "float",
    "real", "double", "string", "binary", "date", "timestamp", "timestamp_ltz", "timestamp_ntz",
}
# fmt: on
_DECIMAL = {"decimal", "dec", "numeric"}
_SIZED = {"char", "character", "varchar"}
_NESTED = {"array", "map", "struct"}
_NAMES = sorted(PLAIN | _DECIMAL | _SIZED | _NESTED)
_MEANT = {
    **dict.fromkeys(("text", "str", "uuid", "json", "object"), "string"),
    **dict.fromkeys(("datetime", "timestamptz", "instant"), "timestamp"),
    **dict.fromkeys(("number", "float64"), "double"),
    **dict.fromkeys(("money", "currency"), "decimal(12,2)"),
    **dict.fromkeys(("int64", "serial"), "bigint"),
    "int32": "int",
    "list": "array<string>",
    "bool": "boolean",
}
_PRECISION_MAX = 38
_DIGITS_MAX = 9
NESTED_MAX = 100
_PIECE = re.compile(r"\s*(?:(`[^`]+`|[(),:<>]|[0-9]+)|([A-Za-z_]\w*)(?=\s*([(),<>]|$))?)", re.ASCII)


def sql_type(text: str) -> str:
    """The type as written, with single blanks. Raises `ValueError` with a message for the user."""
    if text.strip().lower() not in PLAIN:
        type_tree(text)
    return " ".join(text.split())


@lru_cache(maxsize=1000)
def type_tree(text: str) -> exp.DataType:
    """A type as sqlglot reads it. Raises `ValueError` for the user."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    _check_names(text)
    if text.count("<") > NESTED_MAX:
        raise ValueError(f"the type holds more than {NESTED_MAX} nested types")
    try:
        (tree,) = spark_dialect().parse_into(exp.DataType, _PIECE.sub(_quoted, text))
    except (SqlglotError, ValueError):
        tree = None
    if not isinstance(tree, exp.DataType):
        raise ValueError(_malformed(text))
    for part in tree.find_all(exp.DataType):
        _check(part, text)
    return tree


def fields(struct: exp.DataType) -> Iterator[tuple[str, exp.DataType]]:
    """The names and types of a struct's fields."""
    for field in struct.expressions:
        yield field.name, field.args["kind"]


def precision_and_scale(decimal: exp.DataType) -> tuple[int, int]:
    """(12, 2) of `decimal(12, 2)`; Spark's (10, 0) of `decimal`."""
    precision, scale = ([int(n.name) for n in decimal.expressions] + [0, 0])[:2]
    return (precision, scale) if decimal.expressions else (10, 0)


def _quoted(piece: re.Match[str]) -> str:
    """A field's name in backquotes, for it may be a keyword: `struct<select: int>`."""
    return f" `{piece[2]}`" if piece[2] and piece[3] is None else piece[0]


def _check_names(text: str) -> None:
    """Refuse words that stand where only a type can stand, and are none."""
    end = 0
    for found in _PIECE.finditer(text):
        name = (found[2] or "").lower() if found[3] is not None else ""
        if found.start() != end or (found[2] and text[:end].rstrip()[-1:] in (">", ")")):
            break
        end = found.end()
        if name and name not in _NAMES:
            meant = _MEANT.get(name) or nearest(name, _NAMES)
            hint = f"; did you mean {meant!r}?" if meant else ""
            raise ValueError(f"{found[2]!r} is not a Spark SQL type{hint}")
    if not text.strip() or text[end:].strip():
        raise ValueError(f"{text!r} is not a Spark SQL type")


def _check(part: exp.DataType, text: str) -> None:
    """Refuse parameters and parts that Spark's types do not have, but sqlglot lets pass."""
    kind = part.this.value.lower()
    given = [parameter.name for parameter in part.expressions]
    if kind in _NESTED:
        expected = {"array": 1, "map": 2}.get(kind, len(given))
        named = kind != "struct" or all("kind" in field.args for field in part.expressions)
        if not given or len(given) != expected or not named:
            raise ValueError(f"{text!r}: write array<int>, map<string, int>, struct<a: int>")
        return
    numbers = [int(n) for n in given if n.isascii() and n.isdigit() and len(n) <= _DIGITS_MAX]
    if len(numbers) < len(given):
        raise ValueError(_malformed(text))
    if kind in _SIZED and len(numbers) != 1:
        raise ValueError(f"{text!r}: {kind} needs a length, as in {kind}(20)")
    if kind not in _SIZED | _DECIMAL and numbers:
        raise ValueError(f"{text!r}: only decimal, char and varchar have parameters")
    if kind in _DECIMAL and numbers:
        precision, scale, *more = [*numbers, 0][: max(len(numbers), 2)]
        if more or not 1 <= precision <= _PRECISION_MAX or scale > precision:
            message = f"precision is 1 to {_PRECISION_MAX}, scale at most precision"
            raise ValueError(f"{text!r}: {message}")


def _malformed(text: str) -> str:
    names = {found[2].lower() for found in _PIECE.finditer(text) if found[2]}
    if names & _DECIMAL:
        return f"{text!r}: write decimal(precision, scale)"
    if names & _NESTED:
        return f"{text!r}: write array<int>, map<string, int>, struct<a: int>"
    return f"{text!r} is not a Spark SQL type"
