"""Spark's types of results: what two operands have in common, and what arithmetic gives.

Where a setting of Spark's decides the type, the form is outside the list: int with float, and
decimals of more than 38 digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import pyarrow as pa
from pyarrow import types

from tidegate.engine.core.evaluator.nodes import OutsideError
from tidegate.engine.core.types.common import common_type

DIGITS_MAX = 38  # of a decimal
WORD_DIGITS = 18  # of a decimal whose digits are a word
_QUOTIENT_SCALE_MIN = 6
DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_COMPARED = (pa.bool_(), pa.string(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"))


def is_integer(kind: pa.DataType) -> bool:
    return kind in DIGITS


def is_decimal(kind: pa.DataType) -> bool:
    return bool(types.is_decimal128(kind))


def is_float(kind: pa.DataType) -> bool:
    return bool(types.is_floating(kind))


def is_number(kind: pa.DataType) -> bool:
    return is_integer(kind) or is_decimal(kind) or is_float(kind)


def decimal(precision: int, scale: int) -> pa.DataType:
    """Raises OutsideError for too many digits: then Spark rounds, and a setting says how."""
    if precision > DIGITS_MAX:
        raise OutsideError
    return pa.decimal128(precision, scale)


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """The decimal that holds every integer of a type: int is decimal(10,0)."""
    return pa.decimal128(DIGITS[kind], 0) if is_integer(kind) else kind


def literal_decimal(value: int | Decimal) -> pa.DataType:
    """The type of a decimal literal: 1.50 is decimal(3,2), 0.05 decimal(2,2)."""
    _, digits, exponent = Decimal(value).as_tuple()
    scale = -int(exponent)
    return decimal(max(len(digits), scale), scale)


def common(first: pa.DataType, *others: pa.DataType) -> pa.DataType:
    """The type as which values are compared, or branches of a `case` are given: int and
    decimal(12,2) have decimal(12,2), bigint and double have double.

    Raises OutsideError where there is none without a cast that could fail."""
    kind = first
    for other in others:
        if kind != other and not (types.is_null(kind) or types.is_null(other)):
            mixed = {types.is_float32(kind), types.is_float32(other)} == {True, False}
            if not (is_number(kind) and is_number(other)):
                raise OutsideError
            if mixed and (is_integer(kind) or is_integer(other)):
                raise OutsideError
        found = common_type(kind, other)
        if found is None:
            raise OutsideError
        kind = found
    if not (is_number(kind) or kind in _COMPARED):
        raise OutsideError
    return kind


def _sum(p1: int, s1: int, p2: int, s2: int) -> tuple[int, int]:
    scale = max(s1, s2)
    return max(p1 - s1, p2 - s2) + scale + 1, scale


def _product(p1: int, s1: int, p2: int, s2: int) -> tuple[int, int]:
    return p1 + p2 + 1, s1 + s2


def _quotient(p1: int, s1: int, p2: int, s2: int) -> tuple[int, int]:
    scale = max(_QUOTIENT_SCALE_MIN, s1 + p2 + 1)
    if max(p1, p2) > WORD_DIGITS or p2 + scale > DIGITS_MAX:  # else Spark's rounding is of one step
        raise OutsideError
    return p1 - s1 + s2 + scale, scale


def _remainder(p1: int, s1: int, p2: int, s2: int) -> tuple[int, int]:
    scale = max(s1, s2)
    return min(p1 - s1, p2 - s2) + scale, scale


_DECIMALS: Mapping[str, Callable[[int, int, int, int], tuple[int, int]]] = {
    "+": _sum,
    "-": _sum,
    "*": _product,
    "/": _quotient,
    "%": _remainder,
}


def result(operator: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The type of `left operator right`: int + bigint is bigint, int / int is double,
    decimal(12,2) * decimal(5,1) is decimal(18,3). Quotients and remainders of decimals are in the
    list where both have at most 18 digits."""
    if not (is_number(left) and is_number(right)):
        raise OutsideError
    kind = common(left, right)
    if not is_decimal(kind):
        return pa.float64() if operator == "/" else kind
    a, b = as_decimal(left), as_decimal(right)
    return decimal(*_DECIMALS[operator](a.precision, a.scale, b.precision, b.scale))
