"""Decimals as words for hashing, where equal numbers have equal words, whatever their types."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.columns.numba_cache import njit

_DOUBLE, _OWN = 1, 2
_ONE, _TWO32, _TWO53, _TWO63 = (np.uint64(1 << n) for n in (0, 32, 53, 63))
_FIVE, _TEN = np.uint64(5), np.uint64(10)


def decimal_words(array: pa.Array) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Three words of each decimal, and whether it needs all three.

    A decimal that equals a whole number or a double has the word of that: 7.00 has the word of 7.
    Any other decimal has three words: low and high word of its digits without trailing zeros, and
    its scale. Example: 0.10 is (1, 0, 1).
    """
    found, near, kind = np.zeros((len(array), 3), np.uint64), np.zeros(len(array)), array.type
    if pa.types.is_decimal256(kind):
        return _wide_words(array)
    data = np.frombuffer(array.buffers()[1], np.uint64).reshape(-1, 2)
    rows = np.ascontiguousarray(data[array.offset : array.offset + len(array)])
    form = np.zeros(len(array), np.int8)
    _words(rows, kind.scale, found, near, form)
    double = form == _DOUBLE
    found[double, 0] = near[double].view(np.uint64)
    return found, form == _OWN


def _wide_words(array: pa.Array) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """The same of decimals of up to 76 digits. Numbers that met some of another type are so."""
    coded = array.dictionary_encode()
    each = [_words_of(value) for value in coded.dictionary.to_pylist()]
    words = np.array([w for w, _ in each] + [(0, 0, 0)], np.uint64)
    own = np.array([o for _, o in each] + [False], np.bool_)
    index = pc.fill_null(coded.indices, len(each)).to_numpy(zero_copy_only=False)
    return words[index], own[index]


def _words_of(value: Decimal) -> tuple[tuple[int, int, int], bool]:
    """The words of one decimal, and whether it needs all three."""
    sign, digits, exponent = value.as_tuple()
    number, scale = int("".join(map(str, digits))) * (-1 if sign else 1), -int(exponent)
    while scale > 0 and number % 10 == 0:
        number, scale = number // 10, scale - 1
    if scale == 0 and -(2**63) <= number < 2**63:
        return (number % 2**64, 0, 0), False
    if value == (near := float(value)):
        return (int(np.float64(near).view(np.uint64)), 0, 0), False
    beyond = number >> 127  # 0 or -1 where 128 bits hold it
    third = scale if beyond in (0, -1) else (scale << 128 | beyond % 2**128) % (2**61 - 1)
    return (number % 2**64, (number >> 64) % 2**64, third), True


@njit
def _divide(low, high, by):  # type: ignore[no-untyped-def]
    """Divide 128 bits by a small number: (low, high) of the quotient, and the rest."""
    half, mask = np.uint64(32), _TWO32 - _ONE
    rest = high % by
    top = high // by
    upper = (rest << half) | (low >> half)
    lower = ((upper % by) << half) | (low & mask)
    return ((upper // by) << half) | (lower // by), top, lower % by


@njit
def _words(rows, scale, words, near, form):  # type: ignore[no-untyped-def]
    """Fill words[i] for each decimal, rows[i] = (low, high). A decimal that equals a double gets
    near[i] and form _DOUBLE instead. One that equals no other type gets form _OWN."""
    zero = np.uint64(0)
    for i in range(rows.shape[0]):
        low, high, left = rows[i, 0], rows[i, 1], scale
        negative = high >= _TWO63
        if negative:
            low, high = ~low + _ONE, ~high + (_ONE if low == zero else zero)
        while left > 0:
            quotient, top, rest = _divide(low, high, _TEN)
            if rest != zero:
                break
            low, high, left = quotient, top, left - 1
        if left == 0 and high == zero and (low < _TWO63 or (negative and low == _TWO63)):
            words[i, 0] = ~low + _ONE if negative else low
            continue
        odd, over, fives, twos = low, high, left, -left
        while fives > 0:
            quotient, top, rest = _divide(odd, over, _FIVE)
            if rest != zero:
                break
            odd, over, fives = quotient, top, fives - 1
        while fives == 0 and odd & _ONE == zero:
            odd, over, twos = (odd >> _ONE) | (over << np.uint64(63)), over >> _ONE, twos + 1
        if fives == 0 and over == zero and odd < _TWO53:
            near[i] = np.float64(odd) * 2.0**twos * (-1.0 if negative else 1.0)
            form[i] = _DOUBLE
            continue
        if negative:
            low, high = ~low + _ONE, ~high + (_ONE if low == zero else zero)
        words[i, 0], words[i, 1], words[i, 2] = low, high, np.uint64(left)
        form[i] = _OWN
