"""The types of a table's columns, as its values in a trace show them: bigint, double, string or
boolean.

Example: the values 1 and 2.5 have double, 7 and "x" no type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

_LONG = range(-(2**63), 2**63)
_PYTHON = {pa.int64(): int, pa.bool_(): bool}

Kinds = Mapping[str, set[type]]
"""By column, the Python types of its values."""


def kind(value: Any) -> type:
    """The Python type of a JSON value; of an integer beyond all bigints float."""
    beyond = type(value) is int and value not in _LONG
    return float if beyond else type(value)


def kinds(values: Sequence[Any]) -> set[type]:
    """The Python types of some values."""
    found = set(map(type, values))
    if int in found:
        whole = [value for value in values if type(value) is int]
        return found - {int} | {kind(min(whole)), kind(max(whole))}
    return found


def type_of(known: Iterable[type]) -> pa.DataType:
    """The type of a column whose values are of these kinds; null if no type has them all."""
    known = {*known} - {type(None)}
    if known <= {int, float} and known:
        return pa.float64() if float in known else pa.int64()
    if known == {bool}:
        return pa.bool_()
    return pa.string() if known <= {str} else pa.null()


def typed(value: Any, kind: pa.DataType) -> Any:
    """A JSON value as one of this type; null if it is none."""
    if pa.types.is_struct(kind):
        inner = value if isinstance(value, dict) else None
        return inner and {f.name: typed(inner.get(f.name), f.type) for f in kind}
    if isinstance(value, str) and kind == pa.string():
        return value.encode("utf-8", "replace").decode()
    if kind == pa.float64() and type(value) in (int, float):
        return float(value)
    return value if type(value) is _PYTHON.get(kind) else None
