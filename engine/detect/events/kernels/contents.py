"""What closed windows hold: `A*`, `P*`.

The walk begins at the last instance that ended by the close. It follows links to the one before of
the same key, back to the opener. Example: opener a ends at 10, b's of its key end at 5, 15, 20,
terminator c is at 30:

    last[n]     the b at 20
    before      20 -> 15 -> 5 -> none
    held        20, 15; the b at 5 ended before the window opened, so the walk ends there

The same as tables, with the rows 0 for a, 1 to 3 for the b's, 4 for c:

>>> def points(times, rows, role):
...     count = len(times)
...     key, at = np.ones(count, dtype=np.int32), np.array(times)
...     return Columns(key, at, at, np.arange(count + 1), np.array(rows), np.full(count, role))
>>> windows = Closed(
...     first=points([10], [0], 0), inside=points([5, 15, 20], [1, 2, 3], 1),
...     closers=points([30], [4], 2), before=np.array([-1, 0, 1]),
...     left=np.array([0]), right=np.array([0]), last=np.array([2]),
... )
>>> sizes(windows)
(array([2]), np.int64(4))
>>> contents(windows, Ranks(np.array([10, 5, 15, 20, 30]), np.zeros(5))).row
array([0, 2, 3, 4])
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def, call-arg"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.engine.core.columns.numba_cache import njit
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.kernels.columns import Columns
from tidegate.engine.detect.events.kernels.entries import Entries, insert
from tidegate.engine.detect.events.kernels.instance_order import later_list


class Closed(NamedTuple):
    """n closed windows.

    first, inside, closers   the tables of openers, of instances that windows may hold, of
                             terminators
    before[b]                the instance of `inside` before b of the same key, -1 = none
    left[n], right[n]        the opener and the terminator of window n
    last[n]                  the last instance of `inside` that ended by the close, -1 = none
    """

    first: Columns
    inside: Columns
    closers: Columns
    before: Int64
    left: Int64
    right: Int64
    last: Int64


@njit
def sizes(windows):
    """How many instances each window holds; and an upper bound of the entries of all windows."""
    _, _, opened, first, _, _ = windows.first
    _, start, end, offsets, _, _ = windows.inside
    before, closers = windows.before, windows.closers.offsets
    left, right, last = windows.left, windows.right, windows.last
    size = np.zeros(len(left), dtype=np.int64)
    room = np.int64(0)
    for n in range(len(left)):
        a, c, b = left[n], right[n], last[n]
        room += first[a + 1] - first[a] + closers[c + 1] - closers[c]
        while b >= 0 and end[b] >= opened[a]:
            if start[b] >= opened[a]:
                size[n] += 1
                room += offsets[b + 1] - offsets[b]
            b = before[b]
    return size, room


@njit
def contents(windows, ranks):
    """The entries of each window: those of its opener, of what it holds, of its terminator. A
    window holds what starts at the opener's end or later and ends by the close."""
    _, _, opened, a_offsets, a_row, a_role = windows.first
    _, start, end, offsets, b_row, b_role = windows.inside
    _, closing, _, c_offsets, c_row, c_role = windows.closers
    before, left, right, last = windows.before, windows.left, windows.right, windows.last
    size, room = sizes(windows)
    held = np.empty(size.max() if len(size) else 0, dtype=np.int64)
    out = np.empty(len(size) + 1, dtype=np.int64)
    row, role = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int16)
    entries = (row, role)
    out[0] = 0
    o = 0
    for n in range(len(size)):
        a, c, b = left[n], right[n], last[n]
        for e in range(a_offsets[a], a_offsets[a + 1]):
            row[o], role[o] = a_row[e], a_role[e]
            o += 1
        p = size[n]
        while p > 0:
            if start[b] >= opened[a]:
                p -= 1
                held[p] = b
            b = before[b]
        latest = opened[a]
        for p in range(size[n]):
            b = held[p]
            for e in range(offsets[b], offsets[b + 1]):
                if start[b] > latest:
                    row[o], role[o] = b_row[e], b_role[e]
                    o += 1
                else:
                    o = insert(entries, out[n], o, b_row[e], b_role[e], ranks)
            latest = max(latest, end[b])
        for e in range(c_offsets[c], c_offsets[c + 1]):
            if closing[c] > latest:
                row[o], role[o] = c_row[e], c_role[e]
                o += 1
            else:
                o = insert(entries, out[n], o, c_row[e], c_role[e], ranks)
        out[n + 1] = o
    return Entries(out, row[:o], role[:o])


@njit
def settle(windows, at, chain, ranks):
    """Replaces the opener left[n] of each window where several openers start at the same instant:
    the one whose window is the greatest is written to left[n]. What the windows hold decides. The
    rivals stand on the chain between at[n] and left[n]."""
    left, start = windows.left, windows.first.start
    for n in range(len(left)):
        rivals = 1
        i = at[n]
        while i != left[n]:
            rivals += start[i] == start[left[n]]
            i = chain[i]
        if rivals == 1:
            continue
        openers = np.full(rivals, left[n])
        i = at[n]
        while i != left[n]:
            if start[i] == start[left[n]]:
                rivals -= 1
                openers[rivals] = i
            i = chain[i]
        right = np.full(len(openers), windows.right[n])
        last = np.full(len(openers), windows.last[n])
        alike = Closed(
            windows.first, windows.inside, windows.closers, windows.before, openers, right, last
        )
        offsets, row, _ = contents(alike, ranks)
        best = 0
        for m in range(1, len(openers)):
            rows = row[offsets[m] : offsets[m + 1]]
            if later_list(rows, row[offsets[best] : offsets[best + 1]], ranks):
                best = m
        left[n] = openers[best]
