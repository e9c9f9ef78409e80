"""The compiled loops of the operators that look for an opener: `not`, `A`, `A*`.

All say the same of an opener a and a later instance: a has not ended before some instant `low`
(the latest start of what takes it away), and has ended before the later one starts. Names are those
of `kernels`; openers are in order of end.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.compiled import njit
from tidegate.engine.detector.kernels import NEVER, TICK_RANK, insert, later, later_list

NOT_CLOSED = 2**63 - 1


@njit
def last_before(key, end, query_key, query_time, keys):
    """For each query the last instance of its key with end < query_time (-1 = none), and the last
    one of each key. query_time is non-decreasing."""
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
def latest_start(key, start, end, query_key, query_end, inclusive, keys):
    """For each query the latest start of its key's instances, or those of every key, with
    end < query_end (`inclusive`: <=); and the latest of all, by key code."""
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
    for k in range(1, keys + 1):
        latest[k] = max(latest[k], latest[0])
    return found, latest


@njit
def by_rank(order, group, start, offsets, row, time, rank):
    """Sorts the instances `order` within each group by their ranks, then their starts (S4)."""
    for i in range(1, len(order)):
        new = order[i]
        p = i
        while p > 0 and group[p - 1] == group[i]:
            known = order[p - 1]
            lower = order_of_lists(
                row[offsets[new] : offsets[new + 1]], row[offsets[known] : offsets[known + 1]],
                time, rank,
            )  # fmt: skip
            if lower > 0 or (lower == 0 and start[new] >= start[known]):
                break
            order[p] = known
            p -= 1
        order[p] = new


@njit
def order_of_lists(left, right, time, rank):
    """Compares two lists of occurrences by their ranks, lowest first: 1 if the left is greater, -1
    if the right is, 0 if they are alike; a list that has ended is lower."""
    a, b = ranked(left, time, rank), ranked(right, time, rank)
    for i in range(min(len(a), len(b))):
        if precedes(a[i], b[i], time, rank):
            return -1
        if precedes(b[i], a[i], time, rank):
            return 1
    return (len(a) > len(b)) - (len(a) < len(b))


@njit
def ranked(rows, time, rank):
    """The occurrences of a list, lowest first, without ticks."""
    found = np.empty(len(rows), dtype=np.int64)
    n = 0
    for row in rows:
        if rank[row] == TICK_RANK:
            continue
        p = n
        while p > 0 and precedes(row, found[p - 1], time, rank):
            found[p] = found[p - 1]
            p -= 1
        found[p] = row
        n += 1
    return found[:n]


@njit
def precedes(left, right, time, rank):
    """Is one occurrence lower in rank than another? Negative ranks order all occurrences."""
    if rank[left] < 0 or time[left] == time[right]:
        return rank[left] < rank[right]
    return time[left] < time[right]


@njit
def closed_before(key, start, keys):
    """For each c in closing order the latest start of those before it of its key, or of every
    key."""
    latest = np.full(keys + 1, NEVER, dtype=np.int64)
    found = np.empty(len(key), dtype=np.int64)
    for i in range(len(key)):
        found[i] = max(latest[key[i]], latest[0])
        latest[key[i]] = max(latest[key[i]], start[i])
    for k in range(1, keys + 1):
        latest[k] = max(latest[k], latest[0])
    return found, latest


@njit
def previous_greater(key, start, offsets, row, time, rank, keys, ties):
    """For each instance the last one before it of its key that is greater (-1 = none); with `ties`,
    one that starts no earlier."""
    last = np.full(keys + 1, -1, dtype=np.int64)
    chain = np.empty(len(key), dtype=np.int64)
    for i in range(len(key)):
        j = last[key[i]]
        while j >= 0 and not (
            start[j] >= start[i] if ties else later(start, offsets, row, time, rank, j, i)
        ):
            j = chain[j]
        chain[i] = j
        last[key[i]] = i
    return chain


@njit
def climb(at, chain, end, low):
    """For each query the greatest instance from at[q] up its chain with end >= low[q]."""
    found = np.empty(len(at), dtype=np.int64)
    for q in range(len(at)):
        i = at[q]
        if i >= 0 and end[i] < low[q]:
            i = -1
        while i >= 0 and chain[i] >= 0 and end[chain[i]] >= low[q]:
            i = chain[i]
        found[q] = i
    return found


@njit
def marked(at, chain, key, end, low):
    """Marks the instances from each at[n] up its chain with end >= low[key]."""
    mark = np.zeros(len(key), dtype=np.bool_)
    for i in at:
        while i >= 0 and not mark[i] and end[i] >= low[key[i]]:
            mark[i] = True
            i = chain[i]
    return mark


@njit
def by_key(key, keys):
    """The instances of key k are index[bounds[k]:bounds[k + 1]], in their order."""
    bounds = np.zeros(keys + 2, dtype=np.int64)
    for k in key:
        bounds[k + 1] += 1
    bounds = np.cumsum(bounds)
    at = bounds[:-1].copy()
    index = np.empty(len(key), dtype=np.int64)
    for i in range(len(key)):
        index[at[key[i]]] = i
        at[key[i]] += 1
    return bounds, index


@njit
def linked(key, end, query_key, query_end, keys):
    """For each query the last instance of its key with end <= query_end (-1 = none), and for each
    instance the one before it of its key. query_end is non-decreasing."""
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
def contents(
    left, right, last, before,
    a_end, a_offsets, a_row, a_role,
    b_start, b_end, b_offsets, b_row, b_role,
    c_start, c_offsets, c_row, c_role,
    time, rank,
):  # fmt: skip
    """The entries of windows: of the opener left[n], of the b's from last[n] on back that start at
    its end or later, and of the closer right[n]: offsets, row, role."""
    size = np.zeros(len(left), dtype=np.int64)
    room = np.int64(0)
    for n in range(len(left)):
        a, c, b = left[n], right[n], last[n]
        room += a_offsets[a + 1] - a_offsets[a] + c_offsets[c + 1] - c_offsets[c]
        while b >= 0 and b_end[b] >= a_end[a]:
            if b_start[b] >= a_end[a]:
                size[n] += 1
                room += b_offsets[b + 1] - b_offsets[b]
            b = before[b]
    inside = np.empty(size.max() if len(size) else 0, dtype=np.int64)
    out = np.empty(len(left) + 1, dtype=np.int64)
    row = np.empty(room, dtype=np.int64)
    role = np.empty(room, dtype=np.int16)
    out[0] = 0
    o = 0
    for n in range(len(left)):
        a, c, b = left[n], right[n], last[n]
        for e in range(a_offsets[a], a_offsets[a + 1]):
            row[o] = a_row[e]
            role[o] = a_role[e]
            o += 1
        p = size[n]
        while p > 0:
            if b_start[b] >= a_end[a]:
                p -= 1
                inside[p] = b
            b = before[b]
        latest = a_end[a]
        for b in inside[: size[n]]:
            for e in range(b_offsets[b], b_offsets[b + 1]):
                if b_start[b] > latest:
                    row[o] = b_row[e]
                    role[o] = b_role[e]
                    o += 1
                else:
                    filled = insert(row, role, out[n], o - out[n], b_row[e], b_role[e], time, rank)
                    o = out[n] + filled
            latest = max(latest, b_end[b])
        for e in range(c_offsets[c], c_offsets[c + 1]):
            if c_start[c] > latest:
                row[o] = c_row[e]
                role[o] = c_role[e]
                o += 1
            else:
                o = out[n] + insert(row, role, out[n], o - out[n], c_row[e], c_role[e], time, rank)
        out[n + 1] = o
    return out, row[:o], role[:o]


@njit
def settle(
    at, chain, a_start,
    left, right, last, before,
    a_end, a_offsets, a_row, a_role,
    b_start, b_end, b_offsets, b_row, b_role,
    c_start, c_offsets, c_row, c_role,
    time, rank,
):  # fmt: skip
    """Of the windows from opener at[n] up its chain that start with left[n] the greatest is written
    to left[n]."""
    for n in range(len(left)):
        rivals = 1
        i = at[n]
        while i != left[n]:
            rivals += a_start[i] == a_start[left[n]]
            i = chain[i]
        if rivals == 1:
            continue
        openers = np.full(rivals, left[n])
        i = at[n]
        while i != left[n]:
            if a_start[i] == a_start[left[n]]:
                rivals -= 1
                openers[rivals] = i
            i = chain[i]
        offsets, row, _ = contents(
            openers, np.full(len(openers), right[n]), np.full(len(openers), last[n]), before,
            a_end, a_offsets, a_row, a_role, b_start, b_end, b_offsets, b_row, b_role,
            c_start, c_offsets, c_row, c_role, time, rank,
        )  # fmt: skip
        best = 0
        for m in range(1, len(openers)):
            rows = row[offsets[m] : offsets[m + 1]]
            if later_list(rows, row[offsets[best] : offsets[best + 1]], time, rank):
                best = m
        left[n] = openers[best]


@njit
def closes(key, opened, c_start, c_end, bounds, index):
    """For each opener the end of the first c of its key, or of every key, with a start after
    opened[i]; `NOT_CLOSED` if there is none. `bounds`, `index`: the c's by key."""
    highest = np.empty(len(index), dtype=np.int64)
    for k in range(len(bounds) - 1):
        for p in range(bounds[k], bounds[k + 1]):
            highest[p] = c_start[index[p]]
            if p > bounds[k]:
                highest[p] = max(highest[p], highest[p - 1])
    found = np.full(len(key), NOT_CLOSED, dtype=np.int64)
    for i in range(len(key)):
        for own in range(2):
            k = own * key[i]
            low, high = int(bounds[k]), int(bounds[k + 1])
            while low < high:
                middle = (low + high) // 2
                if highest[middle] > opened[i]:
                    high = middle
                else:
                    low = middle + 1
            if low < bounds[k + 1]:
                found[i] = min(found[i], c_end[index[low]])
    return found
