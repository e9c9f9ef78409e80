"""Several instances as one: unions, and the operators that choose several instances of one operand,
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
    several of them have in one role counts once. Fastest where members follow one another."""
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
    """As `unite` for points, no two of which are the same: their starts, rows and roles."""
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
    """For each (key, end) of an arrival the greatest `count` instances of the key so far, one of
    which arrives then: the arrival, and members[n, count] in order of start. And marks the greatest
    count - 1 of each key at the end. The first `carried` instances do not arrive. State:

        top[key]      the greatest instances so far, the greatest first, -1 = none
        filled[key]   how many they are
        written[key]  where the key's latest result stands, -1 = none

    Example, `any(2, a*)` with a at 10, 20, 30 of one key: (10, 20) at 20, (20, 30) at 30.
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
    """Of each key the first `count` instances, the next `count`, and so on: members[n, count], in
    order of their last. And marks those of groups that are not complete. State:

        group[key]    the instances since the last complete group
        filled[key]   how many they are

    Example, `every(2, a)` with a at 10, 20, 30 of one key: (10, 20) at 20; 30 is marked.
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
    """Marks, of `count` instances, the first of each found[k]: filled[k] of them, or `most`."""
    mark = np.zeros(count, dtype=np.bool_)
    for k in range(len(filled)):
        for p in range(min(filled[k], most)):
            mark[found[k, p]] = True
    return mark


@njit
def numbered(index, seen, key):
    """Marks the index-th instance of each key. State, which goes along:

    seen[key]   how many instances there were, up to `index`
    """
    mark = np.zeros(len(key), dtype=np.bool_)
    for i in range(len(key)):
        k = key[i]
        if seen[k] < index:
            seen[k] += 1
            mark[i] = seen[k] == index
    return mark
