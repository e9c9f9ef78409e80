"""Sums from left to right over long windows, each in a number of steps that grows with the
logarithm of its rows.

While a sum stays between two powers of two, doubles near it are multiples of one unit, and adding a
value adds to it the value rounded to whole units, whatever the sum is; but for a half, which is
rounded to the even one. So the sums from a row on move together, and may be taken many rows at a
time, as far as they stay in their binade. Rows at which they may not are added by themselves.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from tidegate.engine.core.columns.numba_cache import inlined, njit, part

_DIGITS = 53
_TOP = 2**_DIGITS
"""Sums are _TOP / 2 to _TOP units."""
_APART = 32
"""So many rows are added by themselves where a binade begins: the first ones are short."""
_BINADES_MAX = 32
"""For sums that go up and down through many binades; what is left then is added by itself."""
_DONE = np.int64(2**62)


@njit
def long_sums(values, low, high):
    """The sum of each window, from left to right. Windows may be of any rows.

    Example: of a hundred times 0.1, rows 0:100 sum up to 9.99999999999998, and rows 20:100 to
    7.99999999999998.
    """
    at, sums = low.copy(), np.zeros(len(low), dtype=np.float64)
    binade = np.empty(len(low), dtype=np.int64)
    for i in range(len(low)):
        at[i], sums[i], binade[i] = _apart(values, at[i], high[i], 0.0)
    leaves = 1
    while leaves < len(values):
        leaves *= 2
    tree = np.zeros((2 * leaves, 3), dtype=np.int64)
    for _ in range(_BINADES_MAX):
        now = _DONE
        for i in range(len(low)):
            now = min(now, binade[i])
        if now == _DONE:
            return sums
        _fill(tree, values, now)
        for i in range(len(low)):
            if binade[i] == now:
                at[i], sums[i] = _together(tree, values, now, at[i], high[i], sums[i])
                at[i], sums[i], binade[i] = _apart(values, at[i], high[i], sums[i])
    for i in range(len(low)):
        for p in range(at[i], high[i]):
            sums[i] += values[p]
    return sums


@part
def _apart(values, at, high, total):
    """Adds some rows by themselves. Returns how far they go, the sum, and its binade."""
    until = min(high, at + _APART)
    while at < high and (at < until or total == 0.0 or not math.isfinite(total)):
        total += values[at]
        at += 1
    return at, total, _DONE if at == high else np.int64(math.frexp(total)[1])


@part
def _fill(tree, values, binade):
    """The rows of values below each node of a tree, in units of a binade: their sum, and the least
    and the greatest of the sums up to each of them. Node n is above 2 n and 2 n + 1; row p is node
    len(tree) / 2 + p."""
    leaves = len(tree) // 2
    for p in range(leaves):
        units = math.ldexp(values[p], _DIGITS - binade) if p < len(values) else math.inf
        if abs(units) < _TOP and abs(units - math.trunc(units)) != 0.5:
            whole = np.int64(np.rint(units))
            _set(tree, leaves + p, whole, whole, whole)
        else:
            _set(tree, leaves + p, 0, -_TOP, _TOP)
    for n in range(leaves - 1, 0, -1):
        left, right = 2 * n, 2 * n + 1
        total = tree[left, 0]
        least = min(tree[left, 1], total + tree[right, 1])
        most = max(tree[left, 2], total + tree[right, 2])
        _set(tree, n, total + tree[right, 0], least, most)


@inlined
def _set(tree, n, total, least, most):
    """What leaves any binade is none that may be added at once."""
    if least > -_TOP and most < _TOP:
        tree[n, 0], tree[n, 1], tree[n, 2] = total, least, most
    else:
        tree[n, 0], tree[n, 1], tree[n, 2] = 0, -_TOP, _TOP


@part
def _together(tree, values, binade, at, high, total):
    """Adds rows as long as the sum stays in its binade. Returns how far they go, and the sum."""
    while at < high:
        units = np.int64(math.ldexp(total, _DIGITS - binade))
        n, rows = len(tree) // 2 + at, 1
        while True:
            while n % 2 == 0 and at + 2 * rows <= high:
                n, rows = n // 2, 2 * rows
            while rows > 1 and not (at + rows <= high and _stays(units, tree[n, 1], tree[n, 2])):
                n, rows = 2 * n, rows // 2
            if not _stays(units, tree[n, 1], tree[n, 2]):
                break
            units += tree[n, 0]
            at, n = at + rows, n + 1
            if at == high:
                break
        total = math.ldexp(np.float64(units), binade - _DIGITS)
        if at < high:
            total += values[at]
            at += 1
        if total == 0.0 or not math.isfinite(total) or math.frexp(total)[1] != binade:
            break
    return at, total


@inlined
def _stays(units, least, most):
    """Whether a sum stays in its binade, past the least number of it: below that, units are
    halves."""
    if units > 0:
        return units + least > _TOP // 2 and units + most < _TOP
    return units + most < -(_TOP // 2) and units + least > -_TOP
