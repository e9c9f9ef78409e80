"""The scans in `chronicle` and `cumulative`. They carry the occurrences that are not consumed.

The state is the queues of `flat.queues`. For `a ; b` of one key, in `chronicle`:

    a@1    queues a: 1        b: -
    a@2    queues a: 1, 2     b: -
    b@3    queues a: 2        b: -    detects a@1 b@3, the oldest instance, and consumes it
    b@4    queues a: -        b: -    detects a@2 b@4

and in `cumulative`: b@3 detects a@1 a@2 b@3; at b@4 there is nothing left.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.core.columns.numba_cache import inlined, njit, part
from tidegate.engine.detect.events.graph.flat.line import COUNT, FROM, REPEATED, TO
from tidegate.engine.detect.events.graph.flat.queues import (
    AT,
    HEAD,
    NEXT,
    Chosen,
    consume,
    fill,
    left,
    oldest,
    open_queues,
    pop,
    push,
    reachable,
)
from tidegate.engine.detect.events.kernels.columns import ENDLESS, NEVER


@njit
def chronicle(layout, line, since):
    """The oldest instance at each terminator: code[n], positions[n, entry]. And the positions of
    the occurrences that are not consumed and happened at `since` or later.

    An instance consumes its terminator, so a terminator ends one instance at most. Simultaneous
    terminators each take the oldest instance that is left, in order of rank.

    `a ; b` on a@1 a@2 b@3:

    >>> layout = Layout(
    ...     np.array([0, 1]), np.array([0, 1]), np.array([0, 1]),
    ...     np.array([[0, 1, 1, 0, ENDLESS], [1, 2, 1, 0, ENDLESS]]),
    ... )
    >>> line = Line(
    ...     source=np.array([0, 0, 1]), code=np.zeros(3, dtype=np.int32),
    ...     time=np.array([1, 2, 3]), row=np.arange(3), carried=0, codes=1, rows=0,
    ... )
    >>> _, positions, waiting = chronicle(layout, line, 0)
    >>> positions.tolist(), waiting
    ([[0, 2]], array([1]))
    """
    total, last = layout.table[:, COUNT].sum(), len(layout.table) - 1
    queues = open_queues(len(layout.stage), line)
    chosen = Chosen(np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64))
    room = 0
    for i in range(line.carried, len(line.code)):
        room += layout.stage[layout.place[line.source[i]]] == last
    code = np.empty(room, dtype=np.int32)
    positions = np.empty((room, total), dtype=np.int64)
    n = _chronicle(layout, line, queues, chosen, code, positions)
    return code[:n], positions[:n], left(queues, len(line.code), since)


@part
def _chronicle(layout, line, queues, chosen, code, positions):
    place, stage, _, table = layout
    places, last = len(stage), len(table) - 1
    fill(queues, places, place, line)
    waits = table[last, COUNT] > 1
    held = positions.shape[1] if waits else positions.shape[1] - 1
    n = 0
    for i in range(line.carried, len(line.code)):
        p = place[line.source[i]]
        base = np.int64(line.code[i]) * places
        s, now = stage[p], line.time[i]
        if not reachable(queues, table, base, s):
            continue
        if s < last or waits:
            push(queues, base + p, i, now)
            if s < last:
                continue
        if oldest(queues, table, line.time, base, now, last + waits, chosen):
            code[n] = line.code[i]
            for o in range(held):
                positions[n, o] = pop(queues, chosen.queue[o])
            if not waits:
                positions[n, held] = i
            if len(queues.used) > 0:
                for o in range(positions.shape[1]):
                    consume(queues, positions[n, o], n)
            n += 1
    return n


@njit
def cumulative(layout, line, since):
    """The union of all instances at each instant that ends one: code[n]. owner[position] is the
    number of the union that holds an occurrence, -1 = none. And the positions that are left, as in
    `chronicle`.

    `a ; b` on a@1 a@2 b@3 is one union:

    >>> layout = Layout(
    ...     np.array([0, 1]), np.array([0, 1]), np.array([0, 1]),
    ...     np.array([[0, 1, 1, 0, ENDLESS], [1, 2, 1, 0, ENDLESS]]),
    ... )
    >>> line = Line(
    ...     source=np.array([0, 0, 1]), code=np.zeros(3, dtype=np.int32),
    ...     time=np.array([1, 2, 3]), row=np.arange(3), carried=0, codes=1, rows=0,
    ... )
    >>> cumulative(layout, line, 0)[1:]
    (array([0, 0, 0]), array([], dtype=int64))
    """
    total = layout.table[:, COUNT].sum()
    queues = open_queues(len(layout.stage), line)
    chosen = Chosen(np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64))
    owner = np.full(len(line.code), -1, dtype=np.int64)
    newest = np.empty(len(layout.stage), dtype=np.int64)
    code = np.empty(len(line.code) - line.carried, dtype=np.int32)
    n = _cumulative(layout, line, queues, chosen, owner, newest, code)
    return code[:n], owner, left(queues, len(line.code), since)


@part
def _cumulative(layout, line, queues, chosen, owner, newest, code):
    place, stage, _, table = layout
    places, last = len(stage), len(table) - 1
    fill(queues, places, place, line)
    n = 0
    i = line.carried
    while i < len(line.code):
        now = line.time[i]
        j = i
        while j < len(line.code) and line.time[j] == now:
            p = place[line.source[j]]
            base = np.int64(line.code[j]) * places
            if reachable(queues, table, base, stage[p]):
                push(queues, base + p, j, now)
            j += 1
        for e in range(i, j):
            base = np.int64(line.code[e]) * places
            if stage[place[line.source[e]]] < last:
                continue
            if oldest(queues, table, line.time, base, now, last + 1, chosen):
                code[n] = line.code[e]
                _consume_all(queues, table, base, n, newest, owner)
                n += 1
            elif table[last, COUNT] == 1:  # such a terminator never waits for another
                while queues.ends[base + place[line.source[e]], HEAD] > 0:
                    pop(queues, base + place[line.source[e]])
        i = j
    return n


@part
def _consume_all(queues, table, base, n, newest, owner):
    """Consumes every occurrence that is in some instance. These are all of the last stage, and of
    each other stage those before the latest possible start of the stage after it. `oldest` has
    dropped the occurrences that are older than any instance."""
    before = ENDLESS
    for s in range(len(table) - 1, -1, -1):
        first, until, count = table[s, FROM], table[s, TO], table[s, COUNT]
        needed = count if table[s, REPEATED] else 1
        for p in range(first, until):
            newest[p] = _consume_until(queues, base + p, before, needed, n, owner)
        before = newest[first] if table[s, REPEATED] else _nth(newest, first, until, count)


@part
def _consume_until(queues, q, before, needed, n, owner):
    """Consumes the occurrences of a queue before an instant. Returns the instant of the `needed`-th
    of these, counted from the last; `NEVER` if there are fewer."""
    ends, instant, link, _, _ = queues
    left = 0
    node = np.int64(ends[q, HEAD])
    while node > 0 and instant[node] < before:
        left += not _consumed_before(queues, node, n)
        node = np.int64(link[node, NEXT])
    found = NEVER
    node = np.int64(ends[q, HEAD])
    while node > 0 and instant[node] < before:
        if not _consumed_before(queues, node, n):
            if left == needed:
                found = instant[node]
            left -= 1
            owner[link[node, AT]] = n
            consume(queues, link[node, AT], n)
        pop(queues, q)
        node = np.int64(ends[q, HEAD])
    return found


@inlined
def _consumed_before(queues, node, n):
    """Whether a detection before n consumed the occurrence in a node."""
    used = queues.used
    return len(used) > 0 and 0 < used[queues.row[queues.link[node, AT]]] <= n


@part
def _nth(values, first, until, n):
    """The n-th greatest of values[first:until]."""
    for p in range(first, until):
        greater = 0
        for q in range(first, until):
            greater += values[q] > values[p] or (values[q] == values[p] and q < p)
        if greater == n - 1:
            return values[p]
    return NEVER


@njit
def united(owner, count):
    """The positions of each of `count` unions, in order: offsets, positions.

    >>> united(np.array([0, 1, 0, -1]), 2)
    (array([0, 2, 3]), array([0, 2, 1]))
    """
    offsets = np.zeros(count + 1, dtype=np.int64)
    for n in owner:
        if n >= 0:
            offsets[n + 1] += 1
    offsets = np.cumsum(offsets)
    at = offsets[:-1].copy()
    positions = np.empty(offsets[-1], dtype=np.int64)
    for i in range(len(owner)):
        if owner[i] >= 0:
            positions[at[owner[i]]] = i
            at[owner[i]] += 1
    return offsets, positions
