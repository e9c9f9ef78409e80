"""Spark SQL type names, as the fields of explicit event types declare them."""

from __future__ import annotations

import difflib
import re

_PLAIN = {
    "boolean",
    "byte",
    "tinyint",
    "short",
    "smallint",
    "int",
    "integer",
    "long",
    "bigint",
    "float",
    "real",
    "double",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ltz",
    "timestamp_ntz",
}
_DECIMAL = {"decimal", "dec", "numeric"}
_SIZED = {"char", "character", "varchar"}
_NESTED = {"array", "map", "struct"}
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
NESTED_MAX = 100
_WORD = re.compile(r"\s*(`[^`]+`|[A-Za-z_]\w*|[0-9]+|[(),:<>])", re.ASCII)


def sql_type(text: str) -> str:
    """The type as written, without needless blanks. Raises `ValueError` for the user."""
    words = [found[1] for found in _WORD.finditer(text)]
    if re.sub(r"\s+", "", "".join(words)) != re.sub(r"\s+", "", text):
        raise ValueError(f"{text!r} is not a Spark SQL type")
    if words.count("<") > NESTED_MAX:
        raise ValueError(f"the type holds more than {NESTED_MAX} nested types")
    rest = _type(words, text)
    if rest:
        raise ValueError(f"{text!r} is not a Spark SQL type: {''.join(rest)!r} is left over")
    return " ".join(text.split())


def _type(words: list[str], text: str) -> list[str]:
    """Take one type off the front; returns what follows it."""
    name, rest = (words[0].lower(), words[1:]) if words else ("", [])
    if name in _PLAIN:
        return rest
    if name in _DECIMAL:
        return _decimal(rest, text)
    if name in _SIZED:
        if len(rest) < 3 or rest[0] != "(" or not _is_number(rest[1]) or rest[2] != ")":
            raise ValueError(f"{text!r}: {name} needs a length, as in {name}(20)")
        return rest[3:]
    if name in _NESTED:
        return _nested(name, rest, text)
    if name in _MEANT:
        raise ValueError(f"{words[0]!r} is not a Spark SQL type; did you mean {_MEANT[name]!r}?")
    close = difflib.get_close_matches(name, [*_PLAIN, *_DECIMAL, *_SIZED, *_NESTED], n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"{words[0] if words else text!r} is not a Spark SQL type{hint}")


def _decimal(rest: list[str], text: str) -> list[str]:
    if rest[:1] != ["("]:
        return rest
    inside = rest[1 : rest.index(")")] if ")" in rest else []
    digits = [int(word) for word in inside[::2] if _is_number(word)]
    well_formed = len(inside) in (1, 3) and len(digits) == (len(inside) + 1) // 2
    if not well_formed or inside[1::2] not in ([], [","]):
        raise ValueError(f"{text!r}: write decimal(precision, scale)")
    precision, scale = digits[0], digits[1] if len(digits) == 2 else 0
    if not 1 <= precision <= _PRECISION_MAX or scale > precision:
        raise ValueError(f"{text!r}: precision is 1 to {_PRECISION_MAX}, scale at most precision")
    return rest[len(inside) + 2 :]


def _nested(name: str, rest: list[str], text: str) -> list[str]:
    if rest[:1] != ["<"]:
        raise ValueError(f"{text!r}: write array<int>, map<string, int>, struct<a: int>")
    parts = 0
    while True:
        rest = rest[1:]
        if name == "struct":
            rest = rest[2:] if rest[1:2] == [":"] else rest[1:]
        rest = _type(rest, text)
        parts += 1
        if rest[:1] != [","]:
            break
    expected = {"array": 1, "map": 2}.get(name, parts)
    if rest[:1] != [">"] or parts != expected:
        raise ValueError(f"{text!r}: write array<int>, map<string, int>, struct<a: int>")
    return rest[1:]


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 10
