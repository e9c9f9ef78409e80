"""The compiled loops of the operators that look for an opener: `not`, `A`, `A*`.

All say the same of an opener a and a later instance: a has not ended before some instant `low`
(the latest start of what takes it away), and has ended before the later one starts. Names are those
of `kernels`; openers are in order of end.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit

from engine.detector.kernels import NEVER, TICK_RANK, grow, later, later_list
from engine.detector.unions import insert

NOT_CLOSED = 2**63 - 1


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def precedes(left, right, time, rank):
    """Is one occurrence lower in rank than another? Negative ranks order all occurrences."""
    if rank[left] < 0 or time[left] == time[right]:
        return rank[left] < rank[right]
    return time[left] < time[right]


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def marked(at, chain, key, end, low):
    """Marks the instances from each at[n] up its chain with end >= low[key]."""
    mark = np.zeros(len(key), dtype=np.bool_)
    for i in at:
        while i >= 0 and not mark[i] and end[i] >= low[key[i]]:
            mark[i] = True
            i = chain[i]
    return mark


@njit(cache=True)
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


@njit(cache=True)
def ended(index, end, instant):
    """How many of the instances at `index`, in order of end, have ended before `instant`."""
    low, high = 0, len(index)
    while low < high:
        middle = (low + high) // 2
        if end[index[middle]] < instant:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def content(
    a, c, start, index,
    a_end, a_offsets, a_row, a_role, b_offsets, b_row, b_role, c_offsets, c_row, c_role,
    time, rank, out_row, out_role,
):  # fmt: skip
    """The entries of the window of opener a, closed by c: the b's of `index`, in order of end,
    with start >= end of a. Returns how many there are, and the arrays, grown if need be."""
    # what is later than all there is needs no call, which is most of them
    n = 0
    size = a_offsets[a + 1] - a_offsets[a] + c_offsets[c + 1] - c_offsets[c]
    for i in index:
        size += b_offsets[i + 1] - b_offsets[i]
    if size > len(out_row):
        out_row, out_role = grow(out_row, 2 * size), grow(out_role, 2 * size)
    for e in range(a_offsets[a], a_offsets[a + 1]):
        if n > 0 and time[a_row[e]] <= time[out_row[n - 1]]:
            n = insert(out_row, out_role, 0, n, a_row[e], a_role[e], time, rank)
            continue
        out_row[n] = a_row[e]
        out_role[n] = a_role[e]
        n += 1
    for i in index:
        if start[i] >= a_end[a]:
            for e in range(b_offsets[i], b_offsets[i + 1]):
                if n > 0 and time[b_row[e]] <= time[out_row[n - 1]]:
                    n = insert(out_row, out_role, 0, n, b_row[e], b_role[e], time, rank)
                    continue
                out_row[n] = b_row[e]
                out_role[n] = b_role[e]
                n += 1
    for e in range(c_offsets[c], c_offsets[c + 1]):
        if n > 0 and time[c_row[e]] <= time[out_row[n - 1]]:
            n = insert(out_row, out_role, 0, n, c_row[e], c_role[e], time, rank)
            continue
        out_row[n] = c_row[e]
        out_role[n] = c_role[e]
        n += 1
    return n, out_row, out_role


@njit(cache=True)
def fill(
    at, low, chain,
    a_start, a_end, a_offsets, a_row, a_role,
    b_start, b_end, b_offsets, b_row, b_role, bounds, index,
    c_key, c_end, c_offsets, c_row, c_role,
    time, rank,
):  # fmt: skip
    """For each closer c the greatest of the windows that it closes: left, right, and entries."""
    left = np.empty(len(at), dtype=np.int64)
    right = np.empty(len(at), dtype=np.int64)
    offsets = np.zeros(len(at) + 1, dtype=np.int64)
    row, role = np.empty(1024, dtype=np.int64), np.empty(1024, dtype=np.int16)
    best_row, best_role = np.empty(64, dtype=np.int64), np.empty(64, dtype=np.int16)
    next_row, next_role = np.empty(64, dtype=np.int64), np.empty(64, dtype=np.int16)
    n = 0
    for c in range(len(at)):
        top = at[c]
        if top < 0 or a_end[top] < low[c]:
            continue
        while chain[top] >= 0 and a_end[chain[top]] >= low[c]:
            top = chain[top]
        i, best, best_size = at[c], -1, 0
        mine = index[bounds[c_key[c]] : bounds[c_key[c] + 1]]
        last = ended(mine, b_end, c_end[c] + 1)
        while i >= 0 and a_end[i] >= low[c]:
            if a_start[i] == a_start[top]:
                first = ended(mine, b_end, a_end[i])
                size, next_row, next_role = content(
                    i, c, b_start, mine[first:last],
                    a_end, a_offsets, a_row, a_role, b_offsets, b_row, b_role,
                    c_offsets, c_row, c_role, time, rank, next_row, next_role,
                )  # fmt: skip
                if best < 0 or later_list(next_row[:size], best_row[:best_size], time, rank):
                    best, best_size = i, size
                    best_row, next_row = next_row, best_row
                    best_role, next_role = next_role, best_role
            i = chain[i]
        total = offsets[n] + best_size
        if total > len(row):
            row, role = grow(row, 2 * total), grow(role, 2 * total)
        for e in range(best_size):
            row[offsets[n] + e] = best_row[e]
            role[offsets[n] + e] = best_role[e]
        left[n], right[n], offsets[n + 1] = best, c, total
        n += 1
    size = offsets[n]
    return left[:n], right[:n], offsets[: n + 1], row[:size].copy(), role[:size].copy()


@njit(cache=True)
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


@njit(cache=True)
def with_ticks(offsets, row, role, counts, ticks, tick_role, time, rank):
    """The entries of some instances with counts[i] ticks each, of `ticks` in turn."""
    out = np.zeros(len(offsets), dtype=np.int64)
    for i in range(len(counts)):
        out[i + 1] = out[i] + offsets[i + 1] - offsets[i] + counts[i]
    out_row = np.empty(out[-1], dtype=np.int64)
    out_role = np.empty(out[-1], dtype=np.int16)
    t = 0
    for i in range(len(counts)):
        n = 0
        for e in range(offsets[i], offsets[i + 1]):
            n = insert(out_row, out_role, out[i], n, row[e], role[e], time, rank)
        for _ in range(counts[i]):
            n = insert(out_row, out_role, out[i], n, ticks[t], tick_role, time, rank)
            t += 1
    return out, out_row, out_role
