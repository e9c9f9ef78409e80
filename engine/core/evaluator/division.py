"""Quotients of decimals, to the last digit.

Example: 2.00 / 3 as decimal(9,6) is 0.666667.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_LIMB = 18  # digits that a word holds, whatever they are
_WIDE = 76  # digits of a sum before it is known to fit


def divided(
    digits: npt.NDArray[np.int64], by: npt.NDArray[np.int64], places: int, kind: pa.DataType
) -> pa.Array:
    """The decimals whose digits are `digits` / `by`, to `places` digits more; a half is rounded
    away from zero. No divisor is 0, and none has more than 18 digits."""
    divisor = np.abs(by).astype(np.uint64)
    limb, rest = np.divmod(np.abs(digits).astype(np.uint64), divisor)
    sum_ = _wide(limb, places)
    while places:
        count = min(places, _LIMB)
        limb = np.zeros_like(rest)
        for _ in range(count):
            digit, rest = np.divmod(rest * 10, divisor)
            limb = limb * 10 + digit
        places -= count
        sum_ = pc.add(sum_, _wide(limb, places)).cast(sum_.type)
    half = (2 * rest >= divisor).astype(np.uint64)
    found = pc.add(sum_, _wide(half, 0)).cast(pa.decimal256(38, 0)).cast(pa.decimal128(38, 0))
    found = pc.if_else(pa.array((digits < 0) != (by < 0)), pc.negate(found), found)
    return found.cast(pa.decimal128(kind.precision, 0)).view(kind)


def _wide(limb: npt.NDArray[np.uint64], zeros: int) -> pa.Array:
    """Whole numbers with so many zeros behind them."""
    whole = pa.array(limb).cast(pa.decimal256(20, 0))
    return (
        whole.cast(pa.decimal256(20 + zeros, zeros))
        .view(pa.decimal256(20 + zeros, 0))
        .cast(pa.decimal256(_WIDE - 1, 0))
    )
