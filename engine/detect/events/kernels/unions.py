"""Unions of instances, and the operators that choose several instances of one operand:
`any(m, a*)`, `every(n, a)`, `a[i]`."""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def, call-arg"

from __future__ import annotations

import numpy as np

from tidegate.engine.core.columns.numba_cache import njit
from tidegate.engine.detect.events.kernels.columns import NEVER, order_of
from tidegate.engine.detect.events.kernels.entries import Entries, insert
from tidegate.engine.detect.events.kernels.instance_order import later


@njit
def unite(members, columns, ranks):
    """The unions of the instances members[n, m]: their starts and their entries. An occurrence that
    several members have in one role counts once. It is fastest if each member starts after the one
    before has ended.

    >>> a = Columns(
    ...     key=np.array([1, 1]), start=np.array([10, 10]), end=np.array([20, 30]),
    ...     offsets=np.array([0, 2, 4]), row=np.array([0, 1, 0, 2]), role=np.zeros(4),
    ... )
    >>> ranks = Ranks(np.array([10, 20, 30]), np.zeros(3))
    >>> start, entries = unite(np.array([[0, 1]]), a, ranks)
    >>> start, entries.row
    (array([10]), array([0, 1, 2]))
    """
    _, start, end, offsets, in_row, in_role = columns
    n, count = members.shape
    room = np.int64(0)
    for i in range(n):
        for p in range(count):
            room += offsets[members[i, p] + 1] - offsets[members[i, p]]
    out_start = np.empty(n, dtype=np.int64)
    out_offsets = np.empty(n + 1, dtype=np.int64)
    row = np.empty(room, dtype=np.int64)
    role = np.empty(room, dtype=np.int16)
    out = (row, role)
    out_offsets[0] = 0
    o = 0
    for i in range(n):
        begin, first, latest = o, start[members[i, 0]], NEVER
        for p in range(count):
            m = members[i, p]
            for e in range(offsets[m], offsets[m + 1]):
                if start[m] > latest:
                    row[o], role[o] = in_row[e], in_role[e]
                    o += 1
                else:
                    o = insert(out, begin, o, in_row[e], in_role[e], ranks)
            first, latest = min(first, start[m]), max(latest, end[m])
        out_start[i] = first
        out_offsets[i + 1] = o
    return out_start, Entries(out_offsets, row[:o], role[:o])


@njit
def unite_points(members, columns, ranks):
    """`unite` for points, all of them different: the starts, rows and roles of the unions."""
    start, in_row, in_role = columns.start, columns.row, columns.role
    n, count = members.shape
    out_start = np.empty(n, dtype=np.int64)
    row = np.empty(n * count, dtype=np.int64)
    role = np.empty(n * count, dtype=np.int16)
    out = (row, role)
    o = 0
    for i in range(n):
        begin, first, latest, ordered = o, start[members[i, 0]], NEVER, True
        for p in range(count):
            m = members[i, p]
            row[o] = in_row[m]
            role[o] = in_role[m]
            ordered &= start[m] > latest
            first, latest = min(first, start[m]), start[m]
            o += 1
        out_start[i] = first
        if not ordered:
            for p in range(count):
                m = members[i, p]
                insert(out, begin, begin + p, in_row[m], in_role[m], ranks)
    return out_start, row, role


@njit
def greatest_of_each(count, carried, columns, ranks, keys):
    """For each (key, end) of an arrival the greatest `count` instances of the key so far, of which
    at least one ends then. Returns the arrival; members[n, count], the least first; and marks of
    the greatest count - 1 instances of each key, which are to be carried. The first `carried`
    instances are carried already, and do not arrive. State:

        top[key]      the greatest instances so far, the greatest first, -1 = none
        filled[key]   how many they are
        written[key]  where the key's latest result stands, -1 = none

    `any(2, a*)` with a at 10, 20, 30 of one key is (10, 20) at 20, and (20, 30) at 30:

    >>> at = np.array([10, 20, 30])
    >>> a = Columns(np.ones(3, dtype=np.int32), at, at, np.arange(4), np.arange(3), np.zeros(3))
    >>> arrival, members, mark = greatest_of_each(2, 0, a, Ranks(at, np.zeros(3)), 1)
    >>> arrival, members.tolist(), mark
    (array([1, 2]), [[0, 1], [1, 2]], array([False, False,  True]))
    """
    key, start, end = columns.key, columns.start, columns.end
    order = order_of(columns, ranks)
    top = np.full((keys + 1, count), -1, dtype=np.int32)
    filled = np.zeros(keys + 1, dtype=np.int64)
    written = np.full(keys + 1, -1, dtype=np.int64)
    arrival = np.empty(len(key) - carried, dtype=np.int64)
    members = np.empty((len(key) - carried, count), dtype=np.int32)
    n = 0
    for i in range(len(key)):
        k = key[i]
        place = filled[k]
        while place > 0:
            j = top[k, place - 1]
            if start[i] < start[j] or (start[i] == start[j] and not later(order, i, j)):
                break
            place -= 1
        if place < count:
            filled[k] = min(filled[k] + 1, count)
            for p in range(filled[k] - 1, place, -1):
                top[k, p] = top[k, p - 1]
            top[k, place] = i
        if i < carried or filled[k] < count:
            continue
        at = written[k]
        if at < 0 or end[arrival[at]] != end[i]:
            at = n
            written[k] = n
            n += 1
        arrival[at] = i
        arrives = False
        for p in range(count):
            members[at, count - 1 - p] = top[k, p]
            arrives |= end[top[k, p]] == end[i]
        if not arrives:
            members[at, 0] = i
    return arrival[:n], members[:n], among(top, filled, count - 1, len(key))


@njit
def each_group(count, key, keys):
    """The instances of each key in groups of `count`: members[n, count], in order of their last
    member. And marks of the instances of groups that are not complete. State:

        group[key]    the instances since the last complete group
        filled[key]   how many they are

    `every(2, a)` with a at 10, 20, 30 of one key is (10, 20) at 20, and 30 is marked:

    >>> members, mark = each_group(2, np.array([1, 1, 1]), 1)
    >>> members.tolist(), mark
    ([[0, 1]], array([False, False,  True]))
    """
    group = np.full((keys + 1, count), -1, dtype=np.int32)
    filled = np.zeros(keys + 1, dtype=np.int64)
    members = np.empty((len(key) // count, count), dtype=np.int32)
    n = 0
    for i in range(len(key)):
        k = key[i]
        group[k, filled[k]] = i
        filled[k] += 1
        if filled[k] == count:
            for p in range(count):
                members[n, p] = group[k, p]
            filled[k] = 0
            n += 1
    return members[:n], among(group, filled, count - 1, len(key))


@njit
def among(found, filled, most, count):
    """Marks among `count` instances the first ones of each row found[k]: filled[k] of them, but
    `most` at most.

    >>> among(np.array([[2, 0, -1]]), np.array([2]), 1, 3)
    array([False, False,  True])
    """
    mark = np.zeros(count, dtype=np.bool_)
    for k in range(len(filled)):
        for p in range(min(filled[k], most)):
            mark[found[k, p]] = True
    return mark


@njit
def numbered(index, seen, key):
    """Marks the index-th instance of each key. State, which is updated:

        seen[key]   how many instances there were, `index` at most

    `a[2]` of key 1, of which one a came before, and of key 2:

    >>> seen = np.array([0, 1, 0])
    >>> numbered(2, seen, np.array([1, 2, 1]))
    array([ True, False, False])
    >>> seen
    array([0, 2, 1])
    """
    mark = np.zeros(len(key), dtype=np.bool_)
    for i in range(len(key)):
        k = key[i]
        if seen[k] < index:
            seen[k] += 1
            mark[i] = seen[k] == index
    return mark
