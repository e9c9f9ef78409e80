"""The scans of `A*(a, b, c)`. They carry the a's whose windows are open, and the b's since.

The state is the queues of `flat.queues`: place 0 has the a's whose windows are open, place 1 the
b's. The line has a's, b's and c's; at one instant b's come first, then c's, then a's. If `length` >
0, each c is the own terminator of an a, `length` after it, and closes only that window. If it is 0,
a c closes all open windows. No instance is longer than `span`.

    b@1    a: -       b: 1      of use only to an a of this instant
    a@2    a: 2       b: -
    b@3    a: 2       b: 3
    a@4    a: 2, 4    b: 3
    c@5    a: -       b: -      chronicle, cumulative: a@2 b@3 c@5 (and a@4); recent: a@4 c@5
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.core.columns.numba_cache import njit, part
from tidegate.engine.detect.events.graph.flat.queues import (
    AT,
    HEAD,
    NEXT,
    fill,
    open_queues,
    pop,
    push,
)
from tidegate.engine.detect.events.kernels.columns import grow


@njit
def consuming(all_a, last_a, place, line, length, span):
    """The scan of a context whose detections consume all they hold: code[n], end[n];
    owner[position], the number of the detection that holds an occurrence, -1 = none; and the
    positions that are left.

    A c detects the first window that it closes, the last (`last_a`), or the union of all (`all_a`),
    with the b's since. Older b's are in no window any more.

    `A*(a, b, c)` on b@1 a@2 b@3 a@4 c@5, the first window and the last:

    >>> line = Line(
    ...     source=np.array([1, 0, 1, 0, 2]), code=np.zeros(5, dtype=np.int32),
    ...     time=np.array([1, 2, 3, 4, 5]), row=np.arange(5), carried=0, codes=1, rows=0,
    ... )
    >>> consuming(False, False, np.array([0, 1, 2]), line, 0, ENDLESS)[2]
    array([-1,  0,  0, -1,  0])
    >>> consuming(False, True, np.array([0, 1, 2]), line, 0, ENDLESS)[2]
    array([-1, -1, -1,  0,  0])
    """
    queues = open_queues(2, line)
    owner = np.full(len(line.code), -1, dtype=np.int64)
    code = np.empty(len(line.code), dtype=np.int32)
    end = np.empty(len(line.code), dtype=np.int64)
    n = _consuming((all_a, last_a), place, line, (length, span), queues, owner, (code, end))
    return code[:n], end[:n], owner, _left(queues, len(line.code))


@part
def _consuming(which, place, line, limits, queues, owner, found):
    code, end = found
    length = limits[0]
    fill(queues, 2, place, line)
    n = 0
    for i in range(line.carried, len(line.code)):
        p, base, now = place[line.source[i]], np.int64(line.code[i]) * 2, line.time[i]
        if p < 2:
            _arrive(queues, base, p, i, now)
            continue
        opened = _close(which, line, limits, queues, owner, base, now, n)
        if opened < 0:
            continue
        if length == 0:
            owner[i] = n
        while queues.ends[base + 1, HEAD] > 0:
            b = pop(queues, base + 1)
            if line.time[b] >= line.time[opened]:
                owner[b] = n
        code[n] = line.code[i]
        end[n] = now
        n += 1
    return n


@part
def _close(which, line, limits, queues, owner, base, now, n):
    """Takes out the windows that close now. Returns the position of the a whose window detection n
    is, -1 = there is none."""
    all_a, last_a = which
    length, span = limits
    opened = np.int64(-1)
    while _closes(queues, base, now, length) and (opened < 0 or all_a or last_a):
        a = pop(queues, base)
        if line.time[a] < now - span:
            continue
        if opened >= 0 and last_a:
            owner[opened] = -1
        owner[a] = n
        if opened < 0 or last_a:
            opened = a
    return opened


@part
def _closes(queues, base, now, length):
    """Whether the first window closes now."""
    first = queues.ends[base, HEAD]
    return first > 0 and queues.instant[first] <= now - max(length, 1)


@part
def _arrive(queues, base, p, i, now):
    """Puts an a or a b into its queue. If no window is open, drops the b's before this instant."""
    while queues.ends[base, HEAD] == 0 and queues.ends[base + 1, HEAD] > 0:
        if queues.instant[queues.ends[base + 1, HEAD]] == now:
            break
        pop(queues, base + 1)
    push(queues, base + p, i, now)


@njit
def continuous(place, line, rank, length, span):
    """Every window that a c closes: code, end, offsets, positions; and the positions that are left.

    A b at the instant of its a, and lower in rank, is the initiator (S2). Of several windows with
    the same initiator only the first is detected.

    `A*(a, b, c)` on a@2 b@3 a@4 c@5:

    >>> line = Line(
    ...     source=np.array([0, 1, 0, 2]), code=np.zeros(4, dtype=np.int32),
    ...     time=np.array([2, 3, 4, 5]), row=np.arange(4), carried=0, codes=1, rows=0,
    ... )
    >>> found = continuous(np.array([0, 1, 2]), line, np.zeros(4), 0, ENDLESS)
    >>> _, end, offsets, positions, _ = found
    >>> end, offsets, positions
    (array([5, 5]), array([0, 3, 5]), array([0, 1, 3, 2, 3]))
    """
    queues = open_queues(2, line)
    fill(queues, 2, place, line)
    initiated = np.full(line.codes, -1, dtype=np.int64)
    code = np.empty(len(line.code), dtype=np.int32)
    end = np.empty(len(line.code), dtype=np.int64)
    offsets = np.zeros(len(line.code) + 1, dtype=np.int64)
    entry = np.empty(1024, dtype=np.int64)
    n = 0
    for i in range(line.carried, len(line.code)):
        p, base, now = place[line.source[i]], np.int64(line.code[i]) * 2, line.time[i]
        if p < 2:
            _arrive(queues, base, p, i, now)
            continue
        while _closes(queues, base, now, length):
            a, size = _open(queues, line, rank, base, initiated, now - span)
            if size < 0:
                continue
            e = offsets[n]
            if e + size + 2 > len(entry):
                entry = grow(entry, 2 * (e + size + 2))
            entry[e] = a
            offsets[n + 1] = _read(queues, base, entry, e + 1)
            if length == 0:
                entry[offsets[n + 1]] = i
                offsets[n + 1] += 1
            code[n] = line.code[i]
            end[n] = now
            n += 1
    left = _left(queues, len(line.code))
    return code[:n], end[:n], offsets[: n + 1], entry[: offsets[n]], left


@part
def _open(queues, line, rank, base, initiated, since):
    """Takes the first window out. Returns the position of its a, and how many b's it has (-1: it is
    not detected)."""
    a = pop(queues, base)
    opened = line.time[a]
    ends, instant, link, _, row = queues
    while ends[base + 1, HEAD] > 0 and instant[ends[base + 1, HEAD]] < opened:
        pop(queues, base + 1)
    if opened < since:
        return a, -1
    node = np.int64(ends[base + 1, HEAD])
    if node > 0 and instant[node] == opened:
        b = np.int64(link[node, AT])
        if rank[row[b]] < rank[row[a]]:
            if initiated[base // 2] == b:
                return a, -1
            initiated[base // 2] = b
    size = 0
    while node > 0:
        size += 1
        node = np.int64(link[node, NEXT])
    return a, size


@part
def _read(queues, base, entry, e):
    """Writes the b's of a key to entry[e:]. Returns where they end."""
    node = np.int64(queues.ends[base + 1, HEAD])
    while node > 0:
        entry[e] = queues.link[node, AT]
        e += 1
        node = np.int64(queues.link[node, NEXT])
    return e


@njit
def _left(queues, room):
    """The positions of the open a's and of the b's since the first of them, in order."""
    mark = np.zeros(room, dtype=np.bool_)
    _mark_left(queues, mark)
    return np.flatnonzero(mark)


@part
def _mark_left(queues, mark):
    ends, instant, link, _, _ = queues
    for base in range(0, len(ends), 2):
        first = ends[base, HEAD]
        for q in range(base, base + 2):
            node = np.int64(ends[q, HEAD]) if first > 0 else 0
            while node > 0:
                mark[link[node, AT]] = instant[node] >= instant[first]
                node = np.int64(link[node, NEXT])
