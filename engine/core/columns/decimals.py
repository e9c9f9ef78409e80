"""Decimals as doubles, and as the integers of their digits."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_DIGITS_EXACT = 15  # of an integer, that a double always holds


def as_doubles(array: pa.Array) -> pa.Array:
    """The nearest doubles, as SQL has them: a quotient of two exact doubles is, and what is read
    from a text. Arrow's own cast often gives the one next to that."""
    kind = array.type
    if kind.precision > _DIGITS_EXACT:
        return pc.cast(pc.cast(array, pa.string()), pa.float64())
    digits = pc.cast(unscaled(array), pa.float64())
    return pc.divide(digits, pa.scalar(10.0**kind.scale))


def unscaled(array: pa.Array) -> pa.Array:
    """The digits of decimals of up to 18 digits, as integers: 1.50 is 150."""
    whole = array.view(pa.decimal128(array.type.precision, 0))
    return pc.cast(whole, pa.int64())
