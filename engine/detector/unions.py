"""The compiled loops that unite several instances of one operand: `any(m, a*)`, `every(n, a)`.

An occurrence that several of them hold in one role counts once. Names are those of `kernels`.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit

from engine.detector.kernels import after, grow, later


@njit(cache=True)
def insert(out_row, out_role, base, n, row, role, time, rank):
    """Insert an entry into the first n from `base` on, in order of (time, rank, row, role), unless
    it is there; returns how many there are then."""
    place = base + n
    while place > base:
        before = out_row[place - 1]
        if before == row:
            if out_role[place - 1] == role:
                return n
            if out_role[place - 1] < role:
                break
        elif not after(before, row, time, rank):
            break
        place -= 1
    for o in range(base + n, place, -1):
        out_row[o] = out_row[o - 1]
        out_role[o] = out_role[o - 1]
    out_row[place] = row
    out_role[place] = role
    return n + 1


@njit(cache=True)
def unite_each(members, start, offsets, row, role, time, rank):
    """The unions of the instances members[n, m]: start, offsets, row, role."""
    n = len(members)
    out_start = np.empty(n, dtype=np.int64)
    out = np.zeros(n + 1, dtype=np.int64)
    room = np.int64(0)
    for i in range(n):
        for p in range(members.shape[1]):
            room += offsets[members[i, p] + 1] - offsets[members[i, p]]
    out_row = np.empty(room, dtype=np.int64)
    out_role = np.empty(room, dtype=np.int16)
    for i in range(n):
        out_start[i] = start[members[i, 0]]
        size = 0
        for p in range(members.shape[1] - 1, -1, -1):
            m = members[i, p]
            out_start[i] = min(out_start[i], start[m])
            for e in range(offsets[m], offsets[m + 1]):
                size = insert(out_row, out_role, out[i], size, row[e], role[e], time, rank)
        out[i + 1] = out[i] + size
    return out_start, out, out_row[: out[n]].copy(), out_role[: out[n]].copy()


@njit(cache=True)
def greatest_of_each(count, carried, key, start, end, offsets, row, time, rank, keys):
    """For each (key, end) of an arrival the greatest `count` instances of the key so far, one of
    which arrives then: index of the arrival, members[n, count]; and the greatest count - 1 of each
    key at the end. The first `carried` instances do not arrive."""
    top = np.full((keys + 1, count), -1, dtype=np.int64)
    filled = np.zeros(keys + 1, dtype=np.int64)
    written = np.full(keys + 1, -1, dtype=np.int64)
    arrival = np.empty(1024, dtype=np.int64)
    members = np.empty((1024, count), dtype=np.int64)
    n = 0
    for i in range(len(key)):
        k = key[i]
        place = filled[k]
        while place > 0:
            j = top[k, place - 1]
            if start[i] < start[j] or (
                start[i] == start[j] and not later(start, offsets, row, time, rank, i, j)
            ):
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
            if n == len(arrival):
                arrival = grow(arrival, 2 * n)
                larger = np.empty((2 * n, count), dtype=np.int64)
                larger[:n] = members
                members = larger
            at = n
            written[k] = n
            n += 1
        arrival[at] = i
        arrives = False
        for p in range(count):
            members[at, p] = top[k, p]
            arrives |= end[top[k, p]] == end[i]
        if not arrives:
            members[at, count - 1] = i
    mark = np.zeros(len(key), dtype=np.bool_)
    for k in range(keys + 1):
        for p in range(min(filled[k], count - 1)):
            mark[top[k, p]] = True
    return arrival[:n].copy(), members[:n].copy(), mark


@njit(cache=True)
def each_group(count, key, keys):
    """Of each key the first `count` instances, the next `count`, and so on: members[n, count], in
    order of their last; and the marks of those that are not complete."""
    group = np.full((keys + 1, count), -1, dtype=np.int64)
    filled = np.zeros(keys + 1, dtype=np.int64)
    members = np.empty((len(key) // count + 1, count), dtype=np.int64)
    n = 0
    for i in range(len(key)):
        k = key[i]
        group[k, filled[k]] = i
        filled[k] += 1
        if filled[k] == count:
            members[n] = group[k]
            filled[k] = 0
            n += 1
    mark = np.zeros(len(key), dtype=np.bool_)
    for k in range(keys + 1):
        for p in range(filled[k]):
            mark[group[k, p]] = True
    return members[:n].copy(), mark


@njit(cache=True)
def numbered(index, seen, key):
    """Marks the index-th instance of each key; seen[k], how many there were before, is counted
    on."""
    mark = np.zeros(len(key), dtype=np.bool_)
    for i in range(len(key)):
        k = key[i]
        if seen[k] < index:
            seen[k] += 1
            mark[i] = seen[k] == index
    return mark
