"""Rows of windows: which rows are of one window, and the rows of each window together."""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.core.columns.numba_cache import inlined, njit
from tidegate.engine.detect.events.kernels.columns import NEVER


@njit
def tumbling(key, end, codes):
    """The window of each row, as (windows, first row of each, place of each row in its window's
    order): a window holds the rows of one key whose window ends at one instant.

    `end[row]`: when the window of a row ends; rows of one window are in order of time, and the ends
    ascend. Windows are numbered in order of their first row.

    >>> tumbling(np.array([1, 2, 1, 1]), np.array([5, 5, 5, 9]), 3)
    (array([0, 2, 3, 4]), array([0, 2, 1, 3]))
    """
    window = np.empty(len(key), dtype=np.int64)
    last = np.full(codes, -1, dtype=np.int64)
    ends = np.full(codes, NEVER, dtype=np.int64)
    n = 0
    for i in range(len(key)):
        k = key[i]
        if last[k] < 0 or ends[k] != end[i]:
            last[k] = n
            ends[k] = end[i]
            n += 1
        window[i] = last[k]
    return together(window, n)


@njit
def sessions(key, time, gap, codes):
    """The same for sessions: a row more than `gap` after the one before it of its key begins one.

    >>> sessions(np.array([1, 1, 1]), np.array([0, 5, 11]), 5, 2)
    (array([0, 2, 3]), array([0, 1, 2]))
    """
    window = np.empty(len(key), dtype=np.int64)
    last = np.full(codes, -1, dtype=np.int64)
    latest = np.full(codes, NEVER, dtype=np.int64)
    n = 0
    for i in range(len(key)):
        k = key[i]
        if last[k] < 0 or time[i] - latest[k] > gap:
            last[k] = n
            n += 1
        latest[k] = time[i]
        window[i] = last[k]
    return together(window, n)


@inlined
def together(window, n):
    """Where the rows of each of n windows begin, and all rows, those of one window together and in
    order."""
    offsets = np.zeros(n + 1, dtype=np.int64)
    for i in range(len(window)):
        offsets[window[i] + 1] += 1
    for w in range(n):
        offsets[w + 1] += offsets[w]
    at = offsets[:-1].copy()
    order = np.empty(len(window), dtype=np.int64)
    for i in range(len(window)):
        order[at[window[i]]] = i
        at[window[i]] += 1
    return offsets, order
