"""Sums of doubles over windows: from left to right, or nearly so and with a bound of the error.

A sum from left to right rounds after each addition, so that of a window cannot be made from that of
the window before: what has left would stay in its rounding. Two sums of the same n values in any
two orders differ by less than 2 n u times the sum of their magnitudes, u = 2**-53 (Higham, Accuracy
and Stability of Numerical Algorithms, 4.2). So a sum in another order, which is made in a few
additions a window, tells which side of a number the sum from left to right is on, but for numbers
that are very near.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from tidegate.engine.core.columns.numba_cache import inlined, njit

_ROUNDING = 2.0**-53
_WHOLE_MAX = 2.0**53
_LARGE = 2.0**1000
"""Sums of magnitudes below it do not overflow in any order."""


@njit
def from_left(values, low, high):
    """The sum of each window, from left to right. Neither bound of the windows ever falls. The sum
    goes on from that of the window before where no row has left.

    >>> from_left(np.array([1.5, 2.0]), np.array([0, 0]), np.array([1, 2]))
    array([1.5, 3.5])
    """
    out = np.empty(len(low), dtype=np.float64)
    first, last, total = np.int64(-1), np.int64(0), 0.0
    for i in range(len(low)):
        if low[i] != first:
            first, last, total = low[i], low[i], 0.0
        for p in range(last, high[i]):
            total += values[p]
        out[i], last = total, high[i]
    return out


@njit
def whole_sums(values):
    """The sum of the values before each, and of all; empty unless all are whole, and so small that
    sums of them are exact in any order.

    >>> whole_sums(np.array([3.0, -1.0])), whole_sums(np.array([0.5]))
    (array([0., 3., 2.]), array([], dtype=float64))
    """
    before = np.empty(len(values) + 1, dtype=np.float64)
    total = size = before[0] = 0.0
    for i in range(len(values)):
        size += abs(values[i])
        if not size < _WHOLE_MAX or values[i] != math.floor(values[i]):
            return before[:0]
        total += values[i]
        before[i + 1] = total
    return before


@njit
def differences(before, low, high):
    """The sum of each window, of the sums of the values before each.

    >>> differences(np.array([0.0, 3.0, 2.0]), np.array([0, 1]), np.array([2, 2]))
    array([ 2., -1.])
    """
    out = np.empty(len(low), dtype=np.float64)
    for i in range(len(low)):
        out[i] = before[high[i]] - before[low[i]]
    return out


@njit
def nearly(values, low, high):
    """A sum of each window, and by how much that from left to right may differ.
    Neither bound of the windows ever falls. By two stacks: rows from a pivot to the left are summed
    when it is chosen, those to the right as they come.

    Whole numbers are exact; 0.1 + 0.2 is not, and may be 4.5e-16 off:

    >>> values = np.array([7.0, 3.0, 0.1, 0.2])
    >>> nearly(values, np.array([0, 2]), np.array([2, 4]))[0]
    array([10. ,  0.3])
    """
    sums = np.zeros(len(low), dtype=np.float64)
    off = np.zeros(len(low), dtype=np.float64)
    left = np.zeros((len(values) + 1, 3), dtype=np.float64)
    pivot, last = np.int64(0), np.int64(0)
    right = _NOTHING
    for i in range(len(low)):
        if low[i] >= pivot:
            pivot = last = high[i]
            so_far, right = _NOTHING, _NOTHING
            for p in range(high[i] - 1, low[i] - 1, -1):
                so_far = _with(so_far, values[p])
                left[p, 0], left[p, 1], left[p, 2] = so_far
        while last < high[i]:
            right = _with(right, values[last])
            last += 1
        total, size, unit = right
        if low[i] < pivot:
            total += left[low[i], 0]
            size += left[low[i], 1]
            unit = min(unit, left[low[i], 2])
        sums[i] = total
        if size >= _LARGE:
            off[i] = math.inf
        elif math.isfinite(total) and size >= unit / _ROUNDING:
            off[i] = 4.0 * _ROUNDING * (high[i] - low[i]) * size
    return sums, off


_NOTHING = (0.0, 0.0, math.inf)
"""The sum of nothing, of its magnitudes, and a number of which all values are multiples."""


@inlined
def _with(so_far, value):
    """With one value more. What is infinite or no number has no magnitude."""
    total, size, unit = so_far
    if not math.isfinite(value):
        return total + value, size, unit
    return total + value, size + abs(value), min(unit, _unit(value))


@inlined
def _unit(value):
    """The greatest power of two that a finite double is a multiple of; of 0 infinity."""
    if value == 0.0:
        return math.inf
    fraction, exponent = math.frexp(value)
    whole = np.int64(fraction * 2.0**53)
    return math.ldexp(np.float64(whole & -whole), exponent - 53)
