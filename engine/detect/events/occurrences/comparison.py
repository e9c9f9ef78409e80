"""Values of different Arrow types in one column, without loss: 7 and 7.0 are one key (`language.md`
4).

Numbers of all types are comparable, by value. So are texts with texts, and times with times. Any
other value is comparable with values of its own type. Lists, maps and structs are no keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_DIGITS_MAX = 76  # of a decimal256


class KeyTypeError(ValueError):
    """Keys that cannot be compared, as a sentence."""


def united(parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """The values of some columns one after the other, in one type that holds all of them exactly.
    For numbers this type depends on the values. Raises `KeyTypeError` if the families differ or no
    type holds all values.

    >>> real, small, large = (pa.chunked_array([[n]]) for n in (7.5, 7, 2**60 + 1))
    >>> united([real, small]).type, united([real, large]).type
    (DataType(double), Decimal128Type(decimal128(21, 1)))
    """
    parts = [_decoded(part) for part in parts]
    kinds = _kinds(part.type for part in parts)
    if reason := incomparable(kinds):
        raise KeyTypeError(reason)
    family = _family(kinds[0]) if kinds else ""
    if len(kinds) <= 1:
        kind = kinds[0] if kinds else pa.null()
    elif family == "number":
        return _joined(_numbers(parts))
    elif family == "time":
        zoned = any(pa.types.is_timestamp(k) and k.tz for k in kinds)
        kind = pa.timestamp("us", "UTC" if zoned else None)
    else:
        kind = pa.large_string() if family == "text" else pa.large_binary()
    try:
        return _joined([part.cast(kind) for part in parts])
    except pa.ArrowInvalid as error:
        message = f"{_listed(kinds)} have no type in common: {error}"
        raise KeyTypeError(message) from None


def incomparable(types: Iterable[pa.DataType]) -> str | None:
    """Why values of these types cannot be keys of one rule; None if they can."""
    kinds = _kinds(types)
    for kind in kinds:
        if not any(is_kind(kind) for is_kind in _KEYS):
            return f"{kind} is no type of a key"
    return f"{_listed(kinds)} are never equal" if len({*map(_family, kinds)}) > 1 else None


def _kinds(types: Iterable[pa.DataType]) -> list[pa.DataType]:
    """The different types, without null. A dictionary counts as the type of its values."""
    plain = (kind.value_type if pa.types.is_dictionary(kind) else kind for kind in types)
    return [*dict.fromkeys(kind for kind in plain if not pa.types.is_null(kind))]


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    is_coded = pa.types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_coded else column


def _joined(parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)


def _listed(kinds: Sequence[pa.DataType]) -> str:
    return " and ".join(map(str, kinds))


def _family(kind: pa.DataType) -> str:
    """The family of a type. Values of two families are never equal."""
    if any(is_kind(kind) for is_kind in _NUMBERS):
        return "number"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return "time"
    if any(is_kind(kind) for is_kind in _BYTES):
        return "bytes"
    return str(kind)


_NUMBERS = (
    pa.types.is_integer,
    pa.types.is_decimal128,
    pa.types.is_decimal256,
    pa.types.is_float32,
    pa.types.is_float64,
)
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
_KEYS = (
    *_NUMBERS,
    *_BYTES,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_temporal,
)


# -- numbers -----------------------------------------------------------------------------------


def _numbers(parts: Sequence[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
    """Columns of numbers in one type."""
    known = [part for part in parts if not pa.types.is_null(part.type)]
    exact = [part for part in known if not pa.types.is_floating(part.type)]
    doubles = [part.cast(pa.float64()) for part in parts if pa.types.is_floating(part.type)]
    if doubles and all(map(_are_doubles, exact)):
        return [_mapped(part, pa.float64(), float) for part in parts]
    decimals = [part for part in exact if pa.types.is_decimal(part.type)]
    if not decimals and all(map(_are_int64, (*exact, *doubles))):
        return [part.cast(pa.int64()) for part in parts]
    sizes = [(k.precision - k.scale, k.scale) for k in (part.type for part in decimals)]
    sizes += [(20, 0)] if len(decimals) < len(exact) else []
    sizes += [_size(value) for part in doubles for value in _distinct(part)]
    kind = _decimal(max(w for w, _ in sizes), max(s for _, s in sizes))
    return [
        _mapped(part, kind, Decimal) if pa.types.is_floating(part.type) else part.cast(kind)
        for part in parts
    ]


def _distinct(column: pa.ChunkedArray) -> list[Any]:
    found: list[Any] = pc.unique(column).drop_null().to_pylist()
    return found


def _are_doubles(column: pa.ChunkedArray) -> bool:
    """Whether doubles hold every number of a column of decimals or whole numbers exactly."""
    if pa.types.is_decimal(column.type):
        return all(Decimal(float(value)) == value for value in _distinct(column))
    found = pc.unique(column).drop_null().to_numpy(zero_copy_only=False)
    small = np.abs(found) <= 2**53
    return bool(small.all()) or all(int(float(value)) == value for value in found.tolist())


def _are_int64(column: pa.ChunkedArray) -> bool:
    if pa.types.is_floating(column.type):
        found = pc.unique(column).drop_null().to_numpy(zero_copy_only=False)
        return bool(((np.floor(found) == found) & (np.abs(found) < 2.0**63)).all())
    return not pa.types.is_uint64(column.type) or (pc.max(column).as_py() or 0) < 2**63


def _size(value: float) -> tuple[int, int]:
    """The digits before and after the point of a double, written as a decimal. Raises
    `KeyTypeError`.

    >>> _size(12.5)
    (2, 1)
    """
    if not math.isfinite(value):
        raise KeyTypeError(f"{value} has no type in common with whole numbers above 2**53")
    _, digits, exponent = Decimal(value).as_tuple()
    shift = int(exponent)
    return max(len(digits) + shift, 0), max(-shift, 0)


def _decimal(whole_digits: int, scale: int) -> pa.DataType:
    digits = max(whole_digits + scale, 1)
    if digits > _DIGITS_MAX:
        raise KeyTypeError(f"numbers of {digits} digits have no type in common")
    return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)


def _mapped(
    column: pa.ChunkedArray, kind: pa.DataType, convert: Callable[[Any], Any]
) -> pa.ChunkedArray:
    """A column of numbers in a type that holds all of them. Decimals are converted here, as Arrow's
    own cast rounds them; and that of whole numbers refuses doubles above 2**53 unless unsafe."""
    if not (pa.types.is_decimal(column.type) or pa.types.is_decimal(kind)):
        return column.cast(kind, safe=False)
    coded = whole(column).dictionary_encode()
    values = [None if value is None else convert(value) for value in coded.dictionary.to_pylist()]
    return pa.chunked_array([pa.array(values, kind).take(coded.indices)])


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The values of a column as one array. A single chunk is not copied, which Arrow would do."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
