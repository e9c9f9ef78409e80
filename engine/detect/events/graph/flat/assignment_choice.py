"""Which of the assignments that a `where` leaves are detected. `left` has the positions of each in
order of (time, rank, row): [n, entry], in order of their ends, key by key (see `assignment_scan`).

Of `a ; b within 10` with a@1 a@2 b@4 a@5 b@6, and all pairs but (a@2, b@4) left, `chronicle` (1)
takes (a@1, b@4), then (a@2, b@6):

>>> line = Line(
...     np.array([0, 0, 1, 0, 1], dtype=np.int16), np.zeros(5, dtype=np.int32),
...     np.array([1, 2, 4, 5, 6]), np.arange(5), 0, 1, 0,
... )
>>> kind, rank = np.array([0, 1]), np.zeros(5, dtype=np.int64)
>>> left = np.array([[0, 2], [3, 4], [1, 4], [0, 4]])
>>> chosen, used = choose(1, line, kind, left, rank, np.arange(5))
>>> left[chosen].tolist(), used.tolist()
([[0, 2], [1, 4]], [True, True, True, False, True])
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.core.columns.numba_cache import inlined, njit, part
from tidegate.engine.detect.events.graph.flat.line import Line as Line
from tidegate.engine.detect.events.kernels.columns import NEVER

GREATEST, CHRONICLE, RECENT, CONTINUOUS = range(4)
"""What `choose` takes of the assignments of a key that end at one instant: the greatest (S1), which
consumes nothing; the oldest, again and again; the greatest, which consumes all that is not newer;
one for each initiator that has begun none yet."""


@njit
def choose(how, line, kind, left, rank, asked):
    """Which of the assignments that are left are detected, and which of the positions `asked` are
    used up: in CONTINUOUS those that have begun one. kind[source]: the number of its event type;
    rank[row]."""
    kinds, rows = kind.max() + 1, max(line.rows, len(line.code))
    used = np.zeros(rows if how in (CHRONICLE, CONTINUOUS) else 0, dtype=np.bool_)
    newest = np.full((line.codes if how == RECENT else 0, kinds), NEVER, dtype=np.int64)
    best = np.full(rows if how == CONTINUOUS else 0, -1, dtype=np.int64)
    out = np.empty(len(left), dtype=np.int64)
    room = len(left) if how == CHRONICLE else 0
    order, spare = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    o, i = 0, 0
    while i < len(left):
        j = i + 1
        while j < len(left) and _together(line, left, i, j):
            j += 1
        if how == CHRONICLE:
            o = _chronicle(line, left, rank, i, j, used, order, spare, out, o)
        elif how == CONTINUOUS:
            o = _continuous(line, left, rank, i, j, used, best, out, o)
        else:
            o = _greatest(how, line, kind, left, rank, i, j, newest, out, o)
        i = j
    if how == RECENT:
        return out[:o], _older_than(line, kind, newest, asked)
    if how == GREATEST:
        return out[:o], np.zeros(len(asked), dtype=np.bool_)
    return out[:o], used[line.row[asked] if line.rows > 0 else asked]


@njit
def _older_than(line, kind, newest, asked):
    used = np.zeros(len(asked), dtype=np.bool_)
    for n in range(len(asked)):
        p = asked[n]
        used[n] = line.time[p] <= newest[line.code[p], kind[line.source[p]]]
    return used


@inlined
def _together(line, left, one, other):
    p, q = left[one, -1], left[other, -1]
    return line.code[p] == line.code[q] and line.time[p] == line.time[q]


@part
def _older(line, left, rank, n, m):
    """Whether an assignment comes before another: by its times, its ranks, its rows."""
    size = left.shape[1]
    for e in range(size):
        p, q = left[n, e], left[m, e]
        if line.time[p] != line.time[q]:
            return line.time[p] < line.time[q]
    for e in range(size):
        one, other = rank[line.row[left[n, e]]], rank[line.row[left[m, e]]]
        if one != other:
            return one < other
    for e in range(size):
        p, q = left[n, e], left[m, e]
        if line.row[p] != line.row[q]:
            return line.row[p] < line.row[q]
    return False


@part
def _greatest(how, line, kind, left, rank, i, j, newest, out, o):
    found = -1
    for n in range(i, j):
        fresh = how == GREATEST or _fresh(line, kind, left, n, newest)
        if fresh and (found < 0 or _older(line, left, rank, found, n)):
            found = n
    if found >= 0:
        out[o] = found
        o += 1
        if how == RECENT:
            for e in range(left.shape[1]):
                p = left[found, e]
                key, type_ = line.code[p], kind[line.source[p]]
                newest[key, type_] = max(newest[key, type_], line.time[p])
    return o


@inlined
def _fresh(line, kind, left, n, newest):
    """Whether it holds nothing that a detection in `recent` has consumed."""
    found = True
    for e in range(left.shape[1]):
        p = left[n, e]
        found &= line.time[p] > newest[line.code[p], kind[line.source[p]]]
    return found


@part
def _chronicle(line, left, rank, i, j, used, order, spare, out, o):
    """The oldest first: what is not free stays so, so one pass in order finds them all."""
    count = 0
    for n in range(i, j):
        if _free(line, left, n, used):
            order[count] = n
            count += 1
    _oldest_first(line, left, rank, order[:count], spare)
    for m in range(count):
        n = order[m]
        if _free(line, left, n, used):
            for e in range(left.shape[1]):
                used[_occurrence(line, left[n, e])] = True
            out[o] = n
            o += 1
    return o


@part
def _oldest_first(line, left, rank, order, spare):
    """Sorts assignments by merging runs; what are equally old stay in order."""
    count, width = len(order), 1
    while width < count:
        for low in range(0, count, 2 * width):
            mid, high = min(low + width, count), min(low + 2 * width, count)
            p, q = low, mid
            for m in range(low, high):
                if q == high or (p < mid and not _older(line, left, rank, order[q], order[p])):
                    spare[m] = order[p]
                    p += 1
                else:
                    spare[m] = order[q]
                    q += 1
        for m in range(count):
            order[m] = spare[m]
        width *= 2


@inlined
def _occurrence(line, p):
    """The number of the occurrence at a position: an occurrence of several stages is on several
    positions."""
    return line.row[p] if line.rows > 0 else np.int64(p)


@inlined
def _free(line, left, n, used):
    found = True
    for e in range(left.shape[1]):
        found &= not used[_occurrence(line, left[n, e])]
    return found


@part
def _continuous(line, left, rank, i, j, used, best, out, o):
    """`best`: by the occurrence of an initiator, its oldest assignment; -1 where there is none."""
    for n in range(i, j):
        r = _occurrence(line, left[n, 0])
        if not used[r] and (best[r] < 0 or _older(line, left, rank, n, best[r])):
            best[r] = n
    for n in range(i, j):
        r = _occurrence(line, left[n, 0])
        if best[r] == n:
            used[r] = True
            best[r] = -1
            out[o] = n
            o += 1
    return o


@njit
def unite(line, left, asked):
    """The unions of the assignments of each key and instant: offsets, positions; and which of the
    positions `asked` are used up. An occurrence is in the first union alone."""
    taken = np.zeros(max(line.rows, len(line.code)), dtype=np.int64)  # the number of its union
    held = np.zeros(len(line.code), dtype=np.int64)
    offsets = np.zeros(len(left) + 1, dtype=np.int64)
    positions = np.empty(left.size, dtype=np.int64)
    number, i, o = 0, 0, 0
    while i < len(left):
        j, low, high = i, left[i, 0], left[i, 0]
        while j < len(left) and _together(line, left, i, j):
            if _unite(line, left, j, number + 1, taken, held):
                for e in range(left.shape[1]):
                    low, high = min(low, left[j, e]), max(high, left[j, e])
            j += 1
        for p in range(low, high + 1):
            if held[p] == number + 1:
                positions[o] = p
                o += 1
        if o > offsets[number]:
            number += 1
            offsets[number] = o
        i = j
    taken_up = taken[line.row[asked] if line.rows > 0 else asked] > 0
    return offsets[: number + 1], positions[:o], taken_up


@part
def _unite(line, left, n, number, taken, held):
    """Takes an assignment into a union, if no other has an occurrence of it."""
    for e in range(left.shape[1]):
        if taken[_occurrence(line, left[n, e])] not in (0, number):
            return False
    for e in range(left.shape[1]):
        taken[_occurrence(line, left[n, e])] = number
        held[left[n, e]] = number
    return True


@njit
def by_end(line, real, order, left, packed):
    """Assignments in order of their ends, and their entries: key, start, end; row, source.
    real[code]: the key; `order`: that of the positions in time; `packed` as `key_by_key` has it."""
    count, size = left.shape
    _pack(line, real, left, _begins(order, left), order, packed)
    key = np.empty(count, dtype=np.int32)
    start, end = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    row, source = np.empty(left.size, dtype=np.int64), np.empty(left.size, dtype=np.int16)
    for o in range(count):
        key[o], start[o], end[o] = packed[o, 0], packed[o, 1], packed[o, 2]
        for e in range(size):
            row[o * size + e] = packed[o, 3 + e]
            source[o * size + e] = packed[o, 3 + size + e]
    return key, start, end, row, source


@njit
def _begins(order, left):
    """For each position in time, how many assignments end before it."""
    begin = np.zeros(len(order) + 1, dtype=np.int32)
    for n in range(len(left)):
        begin[order[left[n, -1]] + 1] += 1
    for t in range(len(order)):
        begin[t + 1] += begin[t]
    return begin


@part
def _pack(line, real, left, begin, order, packed):
    count, size = left.shape
    for n in range(count):
        first, last = left[n, 0], left[n, -1]
        o = np.int64(begin[order[last]])
        begin[order[last]] += 1
        packed[o, 0] = real[line.code[first]]
        packed[o, 1], packed[o, 2] = line.time[first], line.time[last]
        for e in range(size):
            packed[o, 3 + e] = line.row[left[n, e]]
            packed[o, 3 + size + e] = line.source[left[n, e]]
