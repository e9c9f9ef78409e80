"""Pairs of occurrences, and which of those that a `where` leaves are detected. A line has the
occurrences key by key, each key's in order of time; at one instant the b's come first.

For `a ; b within 10` (sources 0 and 1) of one key, with a@1 a@2 b@4 a@5 b@6 on positions 0 .. 4:

>>> line = Line(
...     np.array([0, 0, 1, 0, 1], dtype=np.int16), np.zeros(5, dtype=np.int32),
...     np.array([1, 2, 4, 5, 6]), np.arange(5), 0, 1, 0,
... )
>>> counts = candidates(line, 10)
>>> counts.tolist()
[0, 0, 2, 0, 3]
>>> a, b = pairs(line, counts, 0, 5)
>>> a.tolist(), b.tolist()
([1, 0, 3, 1, 0], [2, 2, 4, 4, 4])

If all but (a@2, b@4) are left, `chronicle` (1) takes (a@1, b@4), then (a@2, b@6):

>>> left = np.array([1, 2, 3, 4])
>>> a, b, used = choose(1, line, a[left], b[left], np.zeros(5, dtype=np.int64))
>>> a.tolist(), b.tolist(), used.tolist()
([0, 1], [2, 4], [True, True, True, False, True])
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.core.columns.numba_cache import inlined, njit, part
from tidegate.engine.detect.events.graph.flat.line import Line as Line
from tidegate.engine.detect.events.kernels.columns import NEVER

GREATEST, CHRONICLE, RECENT, CONTINUOUS = range(4)
"""What `choose` takes of the pairs of a key that end at one instant: the greatest (S1), which
consumes nothing; the oldest, again and again; the greatest, which consumes all that is not newer;
one for each a that is in none yet."""


@njit
def candidates(line, span):
    """For each b, how many a's of its key are before it and no more than `span` older."""
    counts = np.zeros(len(line.source), dtype=np.int64)
    _count(line.source, line.code, line.time, span, counts)
    return counts


@part
def _count(source, code, time, span, counts):
    """`first` is the oldest position that is near enough, with `near` a's from it on."""
    first, near = 0, 0
    for i in range(len(counts)):
        while code[first] != code[i] or time[i] - time[first] > span:
            near -= source[first] == 0
            first += 1
        if source[i] == 0:
            near += 1
        else:
            counts[i] = near


@njit
def pairs(line, counts, since, until):
    """The positions of a and b of the pairs whose b has a position in [since, until), the b's in
    order, for each the latest a first."""
    total = 0
    for i in range(since, until):
        total += counts[i]
    a = np.empty(total, dtype=np.int64)
    b = np.empty(total, dtype=np.int64)
    _fill(line.source, counts, since, until, a, b)
    return a, b


@part
def _fill(source, counts, since, until, a, b):
    o = 0
    for i in range(since, until):
        p, last = i, o + counts[i]
        while o < last:
            p -= 1
            if source[p] == 0:
                a[o], b[o] = p, i
                o += 1


@njit
def choose(how, line, a, b, rank):
    """The pairs that are detected, and which positions are used up: in CONTINUOUS those that have
    begun one."""
    used = np.zeros(len(line.source), dtype=np.bool_)
    newest = np.full(line.codes, NEVER, dtype=np.int64)
    best = np.full(len(line.source), -1, dtype=np.int64)
    out = np.empty(len(a), dtype=np.int64)
    o, i = 0, 0
    while i < len(a):
        j = i
        while j < len(a) and _together(line, b[i], b[j]):
            j += 1
        if how == CHRONICLE:
            o = _chronicle(line, a, b, rank, i, j, used, out, o)
        elif how == CONTINUOUS:
            o = _continuous(line, a, b, rank, i, j, used, best, out, o)
        else:
            o = _greatest(how, line, a, b, rank, i, j, newest, out, o)
        i = j
    if how == RECENT:
        for p in range(len(used)):
            used[p] = line.source[p] == 0 and line.time[p] <= newest[line.code[p]]
    chosen = out[:o]
    return a[chosen], b[chosen], used


@inlined
def _together(line, one, other):
    return line.code[one] == line.code[other] and line.time[one] == line.time[other]


@part
def _older(line, a, b, rank, one, other):
    """Whether a pair comes before another: by the time of a, the ranks, the rows."""
    p, q, r, s = a[one], a[other], b[one], b[other]
    if line.time[p] != line.time[q]:
        return line.time[p] < line.time[q]
    if rank[p] != rank[q]:
        return rank[p] < rank[q]
    if rank[r] != rank[s]:
        return rank[r] < rank[s]
    if line.row[p] != line.row[q]:
        return line.row[p] < line.row[q]
    return line.row[r] < line.row[s]


@part
def _greatest(how, line, a, b, rank, i, j, newest, out, o):
    found = -1
    for n in range(i, j):
        fresh = line.time[a[n]] > newest[line.code[a[n]]]
        if fresh and (found < 0 or _older(line, a, b, rank, found, n)):
            found = n
    if found >= 0:
        out[o] = found
        o += 1
        if how == RECENT:
            newest[line.code[a[found]]] = line.time[a[found]]
    return o


@part
def _chronicle(line, a, b, rank, i, j, used, out, o):
    while True:
        found = -1
        for n in range(i, j):
            free = not used[a[n]] and not used[b[n]]
            if free and (found < 0 or _older(line, a, b, rank, n, found)):
                found = n
        if found < 0:
            return o
        used[a[found]] = used[b[found]] = True
        out[o] = found
        o += 1


@part
def _continuous(line, a, b, rank, i, j, used, best, out, o):
    """`best`: by position of an a, its oldest pair; -1 where there is none."""
    for n in range(i, j):
        p = a[n]
        if not used[p] and (best[p] < 0 or _older(line, a, b, rank, n, best[p])):
            best[p] = n
    for n in range(i, j):
        if best[a[n]] == n:
            used[a[n]] = True
            best[a[n]] = -1
            out[o] = n
            o += 1
    return o


@njit
def unite(line, a, b):
    """The unions of the pairs of each key and instant: offsets, positions; and what is used up. An
    a is in the first union alone."""
    taken = np.zeros(len(line.source), dtype=np.int64)  # by position, the number of its union
    offsets = np.zeros(len(a) + 1, dtype=np.int64)
    positions = np.empty(2 * len(a), dtype=np.int64)
    number, o = 0, 0
    for n in range(len(a)):
        begins = n == 0 or not _together(line, b[n - 1], b[n])
        if begins and (n == 0 or offsets[number] > offsets[number - 1]):
            number += 1
        p, q = a[n], b[n]
        if taken[p] == 0 or taken[p] == number:
            o = _take(p, number, taken, positions, o)
            o = _take(q, number, taken, positions, o)
        offsets[number] = o
    if number > 0 and offsets[number] == offsets[number - 1]:
        number -= 1
    return offsets[: number + 1], positions[:o], taken > 0


@part
def _take(p, number, taken, positions, o):
    if taken[p] == 0:
        taken[p] = number
        positions[o] = p
        o += 1
    return o
