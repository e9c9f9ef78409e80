"""The compiled loops that choose several instances of one operand: `any(m, a*)`, `every(n, a)`,
`a[i]`. Names are those of `kernels`."""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.compiled import njit
from tidegate.engine.detector.kernels import later


@njit
def greatest_of_each(count, carried, key, start, end, offsets, row, time, rank, keys):
    """For each (key, end) of an arrival the greatest `count` instances of the key so far, one of
    which arrives then: index of the arrival, members[n, count] in order of start; and the greatest
    count - 1 of each key at the end. The first `carried` instances do not arrive."""
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
    mark = np.zeros(len(key), dtype=np.bool_)
    for k in range(keys + 1):
        for p in range(min(filled[k], count - 1)):
            mark[top[k, p]] = True
    return arrival[:n], members[:n], mark


@njit
def each_group(count, key, keys):
    """Of each key the first `count` instances, the next `count`, and so on: members[n, count], in
    order of their last; and the marks of those that are not complete."""
    group = np.full((keys + 1, count), -1, dtype=np.int32)
    filled = np.zeros(keys + 1, dtype=np.int64)
    members = np.empty((len(key) // count, count), dtype=np.int32)
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
    return members[:n], mark


@njit
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
