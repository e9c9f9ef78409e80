"""What moving windows have of a column: counts, sums, averages, the least. Window i holds the rows
low[i]:high[i]; neither bound ever falls.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.core.columns.numba_cache import njit


@njit
def counts_in(valid, low, high):
    """How many rows of each window are valid.

    >>> counts_in(np.array([True, False, True]), np.array([0, 1]), np.array([2, 3]))
    array([1, 1])
    """
    before = np.zeros(len(valid) + 1, dtype=np.int64)
    for i in range(len(valid)):
        before[i + 1] = before[i] + valid[i]
    out = np.empty(len(low), dtype=np.int64)
    for i in range(len(low)):
        out[i] = before[high[i]] - before[low[i]]
    return out


@njit
def quotients(sums, counts):
    """The averages of windows; 0.0 where there is nothing.

    >>> quotients(np.array([3.0, 0.0]), np.array([2, 0]))
    array([1.5, 0. ])
    """
    out = np.empty(len(sums), dtype=np.float64)
    for i in range(len(sums)):
        out[i] = sums[i] / max(counts[i], 1)  # the sum of nothing is 0.0
    return out


@njit
def sums_of_words(values, valid, low, high):
    """The sum of the valid rows of each window, where it has 64 bits.

    >>> sums_of_words(np.array([3, 4]), np.array([True, True]), np.array([0, 1]), np.array([2, 2]))
    array([7, 4])
    """
    before = np.zeros(len(values) + 1, dtype=np.int64)  # may wrap around, and back
    for i in range(len(values)):
        before[i + 1] = before[i] + (values[i] if valid[i] else 0)
    out = np.empty(len(low), dtype=np.int64)
    for i in range(len(low)):
        out[i] = before[high[i]] - before[low[i]]
    return out


@njit
def sums_of_long_words(values, valid, low, high):
    """The same of numbers of 128 bits, each a low and a high word.

    >>> most = np.uint64(2**64 - 1)
    >>> values = np.array([[most, 0], [1, 0]], dtype=np.uint64)
    >>> sums_of_long_words(values, np.array([True, True]), np.array([0]), np.array([2]))
    array([[0, 1]], dtype=uint64)
    """
    before = np.zeros((len(values) + 1, 2), dtype=np.uint64)  # may wrap around, and back
    for i in range(len(values)):
        before[i + 1, 0], before[i + 1, 1] = before[i, 0], before[i, 1]
        if valid[i]:
            before[i + 1, 0] += values[i, 0]
            before[i + 1, 1] += values[i, 1]
            if before[i + 1, 0] < values[i, 0]:
                before[i + 1, 1] += np.uint64(1)
    out = np.empty((len(low), 2), dtype=np.uint64)
    for i in range(len(low)):
        out[i, 0] = before[high[i], 0] - before[low[i], 0]
        out[i, 1] = before[high[i], 1] - before[low[i], 1]
        if before[high[i], 0] < before[low[i], 0]:
            out[i, 1] -= np.uint64(1)
    return out


@njit
def least_in(code, valid, low, high):
    """The place of the first least valid row of each window; -1 if there is none.

    >>> code, valid = np.array([5, 3, 4, 9]), np.ones(4, dtype=np.bool_)
    >>> least_in(code, valid, np.array([0, 1, 2]), np.array([1, 3, 4]))
    array([0, 1, 2])
    """
    queue = np.empty(len(code), dtype=np.int64)  # places that may yet be the least, codes ascending
    head = tail = 0
    out = np.full(len(low), -1, dtype=np.int64)
    p = 0
    for i in range(len(low)):
        while p < high[i]:
            if valid[p]:
                while tail > head and code[queue[tail - 1]] > code[p]:
                    tail -= 1
                queue[tail] = p
                tail += 1
            p += 1
        while head < tail and queue[head] < low[i]:
            head += 1
        if head < tail:
            out[i] = queue[head]
    return out
