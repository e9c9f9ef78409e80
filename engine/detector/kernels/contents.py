"""What closed windows hold: `A*`, `P*`.

The instances inside a window are found from the last one on back, by links to the one before of the
same key. Example: opener a ends at 10, b's of its key end at 5, 15, 20, terminator c is at 30:

    last[n]     the b at 20
    before      20 -> 15 -> 5 -> none
    held        20, 15; the b at 5 ended before the window opened, so the walk ends there
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def, call-arg"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.engine.compiled import njit
from tidegate.engine.detector.kernels.columns import NEVER, Columns
from tidegate.engine.detector.kernels.entries import Entries, add
from tidegate.engine.detector.kernels.instance_order import later_list
from tidegate.engine.values import Int64


class Closed(NamedTuple):
    """n closed windows.

    first, inside, closers   the tables of openers, of what windows hold, of terminators
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
    """How many instances each window holds; and how many entries all windows have at most."""
    first, inside, closers = windows.first, windows.inside, windows.closers
    size = np.zeros(len(windows.left), dtype=np.int64)
    room = np.int64(0)
    for n in range(len(windows.left)):
        a, c, b = windows.left[n], windows.right[n], windows.last[n]
        room += first.offsets[a + 1] - first.offsets[a]
        room += closers.offsets[c + 1] - closers.offsets[c]
        while b >= 0 and inside.end[b] >= first.end[a]:
            if inside.start[b] >= first.end[a]:
                size[n] += 1
                room += inside.offsets[b + 1] - inside.offsets[b]
            b = windows.before[b]
    return size, room


@njit
def contents(windows, ranks):
    """The entries of each window: of its opener, of what starts at the opener's end or later, and
    of its terminator."""
    first, inside, closers = windows.first, windows.inside, windows.closers
    size, room = sizes(windows)
    held = np.empty(size.max() if len(size) else 0, dtype=np.int64)
    offsets = np.empty(len(size) + 1, dtype=np.int64)
    row = np.empty(room, dtype=np.int64)
    role = np.empty(room, dtype=np.int16)
    out = (row, role)
    offsets[0] = 0
    o = 0
    for n in range(len(size)):
        a, c, b = windows.left[n], windows.right[n], windows.last[n]
        begin, opened = o, first.end[a]
        o = add(out, begin, o, first, a, NEVER, ranks)
        p = size[n]
        while p > 0:
            if inside.start[b] >= opened:
                p -= 1
                held[p] = b
            b = windows.before[b]
        latest = opened
        for b in held[: size[n]]:
            o = add(out, begin, o, inside, b, latest, ranks)
            latest = max(latest, inside.end[b])
        o = add(out, begin, o, closers, c, latest, ranks)
        offsets[n + 1] = o
    return Entries(offsets, row[:o], role[:o])


@njit
def settle(windows, at, chain, ranks):
    """Of the openers from at[n] up its chain that start with left[n] the one whose window is the
    greatest is written to left[n]: what the windows hold decides."""
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
