"""The common type of two columns of one name."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_TIMES = (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
_DIGITS_MAX = 38


def common_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both, by Spark's ANSI rules for UNION. None if there is
    none, or a text would have to be parsed. Example: int32 and float32 give float64."""
    if a == b or pa.types.is_null(b):
        return a
    if pa.types.is_null(a):
        return b
    if a in _TIMES and b in _TIMES:
        return max(a, b, key=_TIMES.index)
    if a in _DIGITS and b in _DIGITS:
        return max(a, b, key=lambda kind: _DIGITS[kind])
    if _is_number(a) and _is_number(b):
        if pa.types.is_floating(a) or pa.types.is_floating(b):
            return pa.float64()
        (p1, s1), (p2, s2) = _digits(a), _digits(b)
        scale = max(s1, s2)
        precision = max(p1 - s1, p2 - s2) + scale
        return pa.decimal128(precision, scale) if precision <= _DIGITS_MAX else None
    return _nested(a, b)


def rounded(types: Collection[pa.DataType]) -> bool:
    """Whether SQL rounds values to compare them: decimals beside doubles."""
    decimals = any(map(pa.types.is_decimal, types))
    return decimals and any(map(pa.types.is_floating, types))


def outer_union(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The struct with the fields of both. Fields of one name (letter case aside) have their common
    type. None if two have no common type."""
    if pa.types.is_null(a):
        return b
    kinds = {field.name.lower(): field for field in a.fields}
    for field in b.fields:
        known = kinds.setdefault(field.name.lower(), field)
        kind = common_type(known.type, field.type)
        if kind is None:
            return None
        kinds[field.name.lower()] = pa.field(known.name, kind)
    return pa.struct(list(kinds.values()))


def _nested(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    if pa.types.is_list(a) and pa.types.is_list(b):
        item = common_type(a.value_type, b.value_type)
        return pa.list_(item) if item is not None else None
    if pa.types.is_struct(a) and pa.types.is_struct(b) and a.names == b.names:
        kinds = [common_type(x.type, y.type) for x, y in zip(a.fields, b.fields, strict=True)]
        if None not in kinds:
            return pa.struct(list(zip(a.names, kinds, strict=True)))
    return None


def _is_number(kind: pa.DataType) -> bool:
    return kind in _DIGITS or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _digits(kind: pa.DataType) -> tuple[int, int]:
    return (_DIGITS[kind], 0) if kind in _DIGITS else (kind.precision, kind.scale)
