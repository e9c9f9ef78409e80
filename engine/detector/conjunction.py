"""The compiled loop of `and`, `all` and `any`: one instance each of m distinct operands.

All operands stand in one pool of instances, operand o in bounds[o]:bounds[o + 1] in order of end,
its first carried[o] instances carried from before. The other names are those of `kernels`.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit

from engine.detector.kernels import grow, later, later_list, union_into, union_size

UNDECIDED = 2


@njit(cache=True)
def conjoin(bounds, carried, count, key, start, end, offsets, row, role, time, rank, keys):
    """For each (key, instant) with an arrival the greatest union of `count` operands, one of which
    arrives now: key[n], end[n], members[n, count], and slot[operand, key] at the end.

    The order of S1 is invariant under union with the same instance (it compares, at the oldest
    difference, how many occurrences stand there), so the greatest union is that of the greatest
    operands.
    """
    operands = len(bounds) - 1
    index, operand = merged(bounds, carried, end)
    slot = stored(bounds, carried, key, start, offsets, row, time, rank, keys)
    fresh = np.full((operands, keys + 1), -1, dtype=np.int64)
    owns, own, owners, general = present(slot)
    stamp = np.full(keys + 1, -(2**63), dtype=np.int64)
    touched = np.empty(keys + 1, dtype=np.int32)
    room = 1024
    out_key = np.empty(room, dtype=np.int32)
    out_end = np.empty(room, dtype=np.int64)
    members = np.empty(room * count, dtype=np.int64)
    last = np.empty(operands, dtype=np.int64)
    now = np.empty(operands, dtype=np.int64)
    order = np.empty(operands, dtype=np.int64)
    top = np.empty(count, dtype=np.int64)
    n = 0
    at = 0
    while at < len(index):
        instant = end[index[at]]
        touches = 0
        while at < len(index) and end[index[at]] == instant:
            i = index[at]
            o = operand[at]
            k = key[i]
            at += 1
            # what has the same start is compared apart: calls make a loop slow
            f = fresh[o, k]
            same = f >= 0 and end[f] == instant
            if not same or start[i] > start[f]:
                fresh[o, k] = i
            if same and start[i] == start[f] and later(start, offsets, row, time, rank, i, f):
                fresh[o, k] = i
            s = slot[o, k]
            if s < 0 or start[i] > start[s]:
                slot[o, k] = i
            if s >= 0 and start[i] == start[s] and later(start, offsets, row, time, rank, i, s):
                slot[o, k] = i
            if stamp[k] != instant:
                stamp[k] = instant
                touched[touches] = k
                touches += 1
            general |= k == 0
            if k > 0 and not owns[k]:
                owns[k] = True
                own[owners] = k
                owners += 1
        every = stamp[0] == instant
        for c in range(owners + 1 if every else touches):
            k = touched[c]
            if every:
                k = own[c] if c < owners else np.int32(0)
            found = UNDECIDED
            if not general:
                found = latest_starts(k, instant, slot, top, start, end)
            if found == UNDECIDED:
                found = choose(
                    k, instant, slot, fresh, last, now, order, top,
                    start, end, offsets, row, role, time, rank,
                )  # fmt: skip
            if not found:
                continue
            if every and k > 0 and not some_own(top, key):
                continue
            if n == room:
                room *= 2
                out_key = grow(out_key, room)
                out_end = grow(out_end, room)
                members = grow(members, room * count)
            out_key[n] = k
            out_end[n] = instant
            for m in range(count):
                members[n * count + m] = top[m]
            n += 1
    return out_key[:n], out_end[:n], members[: n * count].reshape((n, count)), slot


@njit(cache=True)
def merged(bounds, carried, end):
    """What arrives, in order of end: index in the pool, operand."""
    at = bounds[:-1] + carried
    n = (bounds[1:] - at).sum()
    index = np.empty(n, dtype=np.int64)
    operand = np.empty(n, dtype=np.int16)
    for p in range(n):
        first = -1
        for o in range(len(at)):
            if at[o] < bounds[o + 1] and (first < 0 or end[at[o]] < end[at[first]]):
                first = o
        index[p] = at[first]
        operand[p] = first
        at[first] += 1
    return index, operand


@njit(cache=True)
def stored(bounds, carried, key, start, offsets, row, time, rank, keys):
    """Of each operand and key the greatest instance that is carried (-1 = none)."""
    slot = np.full((len(carried), keys + 1), -1, dtype=np.int64)
    for o in range(len(carried)):
        for i in range(bounds[o], bounds[o] + carried[o]):
            j = slot[o, key[i]]
            if j < 0 or later(start, offsets, row, time, rank, i, j):
                slot[o, key[i]] = i
    return slot


@njit(cache=True)
def present(slot):
    """Which keys have an instance, the same as a list with room for more, how many they are, and
    whether there is one of every key."""
    owns = np.zeros(slot.shape[1], dtype=np.bool_)
    for o in range(len(slot)):
        owns |= slot[o] >= 0
    general = owns[0]
    owns[0] = False
    keys = np.flatnonzero(owns)
    own = np.empty(len(owns), dtype=np.int32)
    own[: len(keys)] = keys
    return owns, own, len(keys), general


@njit(cache=True)
def latest_starts(k, instant, slot, top, start, end):
    """As `choose` where nothing is of every key; `UNDECIDED` where starts do not tell."""
    count = len(top)
    present = 0
    for o in range(len(slot)):
        s = slot[o, k]
        if s < 0:
            continue
        p = min(present, count)
        while p > 0 and start[top[p - 1]] < start[s]:
            p -= 1
        if p > 0 and start[top[p - 1]] == start[s]:
            return UNDECIDED
        for m in range(min(present, count - 1), p, -1):
            top[m] = top[m - 1]
        if p < count:
            top[p] = s
        present += 1
    if present < count:
        return 0
    for m in range(count):
        if end[top[m]] == instant:
            return 1
    return UNDECIDED


@njit(cache=True)
def some_own(chosen, key):
    """Is one of the chosen instances of one key?"""
    return (key[chosen] > 0).any()


@njit(cache=True)
def choose(
    k, instant, slot, fresh, last, now, order, top, start, end, offsets, row, role, time, rank
):
    """Write to `top` the greatest union for key k at `instant`; 0 if there is none."""
    present = 0
    arrived = False
    for o in range(len(last)):
        last[o] = slot[o, k]
        now[o] = fresh[o, k]
        if now[o] >= 0 and end[now[o]] != instant:
            now[o] = -1
        if k > 0:
            s = slot[o, 0]
            if s >= 0 and (last[o] < 0 or later(start, offsets, row, time, rank, s, last[o])):
                last[o] = s
            f = fresh[o, 0]
            if (
                f >= 0
                and end[f] == instant
                and (now[o] < 0 or later(start, offsets, row, time, rank, f, now[o]))
            ):
                now[o] = f
        present += last[o] >= 0
        arrived |= now[o] >= 0
    count = len(top)
    if present < count or not arrived:
        return 0
    descending(last, order, start, offsets, row, time, rank)
    holds_arrival = False
    for m in range(count):
        top[m] = last[order[m]]
        holds_arrival |= end[top[m]] == instant
    if not holds_arrival:
        force(order[:present], now, top, start, offsets, row, role, time, rank)
    return 1


@njit(cache=True)
def descending(last, order, start, offsets, row, time, rank):
    """Write the operands that have an instance to `order`, the greatest first (insertion sort)."""
    n = 0
    for o in range(len(last)):
        if last[o] < 0:
            continue
        p = n
        while p > 0 and later(start, offsets, row, time, rank, last[o], last[order[p - 1]]):
            order[p] = order[p - 1]
            p -= 1
        order[p] = o
        n += 1


@njit(cache=True)
def force(order, now, top, start, offsets, row, role, time, rank):
    """None of the greatest operands arrives now: put one that does in its own place, or in that of
    the least of them, such that the union is greatest."""
    count = len(top)
    base = top.copy()
    best_start = np.int64(-(2**63))
    best_rows = np.empty(0, dtype=np.int64)
    found = False
    for o in order:
        if now[o] < 0:
            continue
        candidate = base.copy()
        place = count - 1
        for m in range(count):
            if order[m] == o:
                place = m
        candidate[place] = now[o]
        size = union_size(candidate, offsets)
        rows = np.empty(size, dtype=np.int64)
        roles = np.empty(size, dtype=np.int16)
        union_into(candidate, offsets, row, role, time, rank, rows, roles)
        first = start[candidate].min()
        better = first > best_start or (
            first == best_start and later_list(rows, best_rows, time, rank)
        )
        if not found or better:
            found = True
            best_start = first
            best_rows = rows
            top[:] = candidate
