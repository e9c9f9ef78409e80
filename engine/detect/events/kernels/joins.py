"""As-of joins: for each query an instance that ended before it.

Each loop walks two tables once, side by side in order of time, for all keys. Its state is an array
with a number for each key code, so nothing is sorted by key:

    kernel            state[key]                                    read by
    as_of             the greatest instance that has ended          `;`
    last_before       the last instance that has ended              `not`, `A`, `A*`, `P*`
    linked            likewise, and links each to the one before    `A*`
    latest_start      the latest start of those that have ended     `not`, `A`
    without           likewise                                      `-`

Example: `a ; b` with a at 10 (key 1), 20 (key 2), and b at 30 (key 1), 40 (key 3):

    a at 10   state[1] = this a
    a at 20   state[2] = this a
    b at 30   finds the a at 10
    b at 40   finds nothing: state[3] = -1

A key sees its own instances and those of every key, which have the code 0. A query of code 0 sees
the instances of each key.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def, call-arg"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.engine.core.columns.numba_cache import njit
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.kernels.columns import NEVER, Int32, grow, order_of
from tidegate.engine.detect.events.kernels.instance_order import later


class Queries(NamedTuple):
    """The right side of `;`, in order of start: for each query its key code, its start, its end."""

    key: Int32
    start: Int64
    end: Int64


class Pairs(NamedTuple):
    """What an as-of join finds: instance left[n] for query right[n], as an instance of key[n]."""

    left: Int64
    right: Int64
    key: Int32


@njit
def as_of(columns, ranks, queries, span, keys):
    """For each query the greatest instance that ended before the query starts. A pair longer than
    `span` is left out. Returns the pairs; and best[key] after the last instance. State:

        best[key]     the greatest instance that has ended, -1 = none
        own[:owners]  the keys that have one

    A query of code 0 finds the greatest instance of code 0, and one more for each key that has a
    greater one.

    The a's of the keys 1 and 2 are at 10 and 20. The b's of the keys 1 and 3 are at 30 and 40:

    >>> at = np.array([10, 20])
    >>> a = Columns(np.array([1, 2]), at, at, np.arange(3), np.array([0, 1]), np.zeros(2))
    >>> b = Queries(key=np.array([1, 3]), start=np.array([30, 40]), end=np.array([30, 40]))
    >>> pairs, best = as_of(a, Ranks(at, np.zeros(2)), b, ENDLESS, 3)
    >>> pairs
    Pairs(left=array([0]), right=array([0]), key=array([1], dtype=int32))
    >>> best
    array([-1,  0,  1, -1], dtype=int32)
    """
    key, start, end = columns.key, columns.start, columns.end
    order = order_of(columns, ranks)
    best = np.full(keys + 1, -1, dtype=np.int32)
    own = np.empty(keys, dtype=np.int32)
    owners, n, i = 0, 0, 0
    query_key, query_start, query_end = queries
    count = len(query_key)
    room = count
    left, right = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    out_key = np.empty(room, dtype=np.int32)
    for q in range(count + 1):
        while i < len(end) and (q == count or end[i] < query_start[q]):
            k = key[i]
            j = best[k]
            if j < 0:
                best[k] = i
                if k > 0:
                    own[owners] = k
                    owners += 1
            elif start[i] > start[j] or later(order, i, j):
                best[k] = i
            i += 1
        if q == count:
            break
        k = query_key[q]
        since = query_end[q] - span
        every = best[0]
        found = best[k]
        if every >= 0 and (found < 0 or later(order, every, found)):
            found = every
        left[n], right[n], out_key[n] = found, q, k
        n += found >= 0 and start[found] >= since
        if k > 0:
            continue
        if n + owners + count - q > room:
            room = 2 * room + owners
            left, right, out_key = grow(left, room), grow(right, room), grow(out_key, room)
        for o in range(owners):
            found = best[own[o]]
            if start[found] >= since and (every < 0 or later(order, found, every)):
                left[n], right[n], out_key[n] = found, q, own[o]
                n += 1
    return Pairs(left[:n], right[:n], out_key[:n]), best


@njit
def last_before(key, end, query_key, query_time, keys):
    """For each query the last instance of its key with end < query_time, -1 = none; and the last
    instance of each key. query_time is non-decreasing.

    >>> key, end = np.array([1, 2, 1]), np.array([10, 20, 30])
    >>> last_before(key, end, np.array([1, 1, 2]), np.array([10, 20, 40]), 2)
    (array([-1,  0,  1]), array([-1,  2,  1]))
    """
    last = np.full(keys + 1, -1, dtype=np.int64)
    found = np.empty(len(query_key), dtype=np.int64)
    i = 0
    for q in range(len(query_key)):
        while i < len(end) and end[i] < query_time[q]:
            last[key[i]] = i
            i += 1
        found[q] = last[query_key[q]]
    while i < len(end):
        last[key[i]] = i
        i += 1
    return found, last


@njit
def linked(key, end, query_key, query_end, keys):
    """For each query the last instance of its key with end <= query_end, -1 = none; and for each
    instance the one before it of its key, -1 = none. query_end is non-decreasing. Instances after
    the last query are not linked.

    >>> key, end = np.array([1, 2, 1]), np.array([10, 20, 30])
    >>> linked(key, end, np.array([1, 1]), np.array([10, 40]), 2)
    (array([0, 2]), array([-1, -1,  0]))
    """
    last = np.full(keys + 1, -1, dtype=np.int64)
    before = np.empty(len(key), dtype=np.int64)
    found = np.empty(len(query_key), dtype=np.int64)
    i = 0
    for q in range(len(query_key)):
        while i < len(key) and end[i] <= query_end[q]:
            before[i] = last[key[i]]
            last[key[i]] = i
            i += 1
        found[q] = last[query_key[q]]
    return found, before


@njit
def latest_start(columns, query_key, query_end, inclusive, keys):
    """For each query the latest start of the instances that its key sees with end < query_end
    (`inclusive`: end <= query_end), `NEVER` = none; and for each key the latest start of all that
    it sees. query_end is non-decreasing.

    >>> b = Columns(
    ...     key=np.array([1, 0]), start=np.array([5, 15]), end=np.array([10, 20]),
    ...     offsets=np.arange(3), row=np.array([0, 1]), role=np.zeros(2),
    ... )
    >>> found, latest = latest_start(b, np.array([1, 1, 2]), np.array([20, 21, 30]), False, 2)
    >>> found, latest
    (array([ 5, 15, 15]), array([15, 15, 15]))
    """
    key, start, end = columns.key, columns.start, columns.end
    latest = np.full(keys + 1, NEVER, dtype=np.int64)
    found = np.empty(len(query_key), dtype=np.int64)
    i = 0
    for q in range(len(query_key)):
        while i < len(end) and (end[i] < query_end[q] or (inclusive and end[i] == query_end[q])):
            latest[key[i]] = max(latest[key[i]], start[i])
            i += 1
        found[q] = max(latest[query_key[q]], latest[0])
    while i < len(end):
        latest[key[i]] = max(latest[key[i]], start[i])
        i += 1
    return found, seen_by_each(latest)


@njit
def seen_by_each(latest):
    """The latest start that each key sees: that of its own instances or of those of every key."""
    for k in range(1, len(latest)):
        latest[k] = max(latest[k], latest[0])
    return latest


@njit
def without(part, absent, keys):
    """Marks each instance of `part` that holds no instance of `absent` wholly. Returns the marks,
    and for each key the latest start of `absent`, `NEVER` = none.

    >>> a = Columns(
    ...     key=np.array([1, 1]), start=np.array([10, 20]), end=np.array([20, 40]),
    ...     offsets=np.arange(3), row=np.array([0, 1]), role=np.zeros(2),
    ... )
    >>> b = Columns(
    ...     key=np.array([1]), start=np.array([25]), end=np.array([30]),
    ...     offsets=np.arange(2), row=np.array([2]), role=np.zeros(1),
    ... )
    >>> without(a, b, 1)[0]
    array([ True, False])
    """
    key, start, end = absent.key, absent.start, absent.end
    part_key, part_start, part_end = part.key, part.start, part.end
    latest = np.full(keys + 1, NEVER, dtype=np.int64)
    mark = np.empty(len(part_key), dtype=np.bool_)
    j = 0
    for i in range(len(part_key)):
        while j < len(key) and end[j] <= part_end[i]:
            latest[key[j]] = max(latest[key[j]], start[j])
            j += 1
        mark[i] = part_start[i] > max(latest[part_key[i]], latest[0])
    while j < len(key):
        latest[key[j]] = max(latest[key[j]], start[j])
        j += 1
    return mark, latest
