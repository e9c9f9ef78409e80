"""The compiled loop of `and`, `all` and `any`: one instance each of m distinct operands.

All operands stand in one pool of instances, operand o in bounds[o]:bounds[o + 1] in order of end,
its first carried[o] instances carried from before. slot[k, o] is the greatest instance of operand o
and key k so far (-1 = none), first[k, o] its start. The other names are those of `kernels`.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.compiled import njit
from tidegate.engine.detector.kernels import NEVER, grow, insert, later, later_list

ENDED = 2**63 - 1


@njit
def conjoin(bounds, carried, count, key, start, end, offsets, row, role, time, rank, keys):
    """For each (key, instant) with an arrival the greatest union of `count` operands, one of which
    arrives now: key[n], end[n], members[n, count]; and slot[key, operand] at the end.

    The order of S1 is invariant under union with the same instance (it compares, at the oldest
    difference, how many occurrences stand there), so the greatest union is that of the greatest
    operands.
    """
    slot, first = stored(bounds, carried, key, start, offsets, row, time, rank, keys)
    fresh = np.full_like(slot, -1)
    own, owners, owns = owning(slot)
    general = (key == 0).any()
    at = bounds[:-1] + carried
    stamp = np.full(keys + 1, NEVER)
    out_key = np.empty(0, dtype=np.int32)
    out_end = np.empty(0, dtype=np.int64)
    members = np.empty((0, count), dtype=np.int32)
    n = 0
    while next_end(at, bounds, end) != ENDED:
        room = 2 * n + (bounds[1:] - at).sum() + keys + 1
        out_key, out_end, members = grow(out_key, room), grow(out_end, room), grow(members, room)
        n, owners = walk(
            at, bounds, slot, first, fresh, general, own, owners, owns, stamp,
            n, out_key, out_end, members,
            key, start, end, offsets, row, role, time, rank,
        )  # fmt: skip
    return out_key[:n], out_end[:n], members[:n], slot


@njit
def walk(
    at, bounds, slot, first, fresh, general, own, owners, owns, stamp,
    n, out_key, out_end, members,
    key, start, end, offsets, row, role, time, rank,
):  # fmt: skip
    """Goes on with `conjoin` while there is room: how much there is of it, and how many owners.
    Calls and arrays that grow make a loop slow."""
    operands, count = len(at), members.shape[1]
    last = np.empty(operands, dtype=np.int32)
    now = np.empty(operands, dtype=np.int32)
    order = np.empty(operands, dtype=np.int32)
    touched = np.empty(len(stamp), dtype=np.int32)
    instant = next_end(at, bounds, end)
    while instant != ENDED and n + len(stamp) <= len(out_key):
        touches = 0
        for o in range(operands):
            while at[o] < bounds[o + 1] and end[at[o]] == instant:
                i = at[o]
                k = key[i]
                at[o] += 1
                fresh[k, o] = i
                if start[i] > first[k, o] or (
                    start[i] == first[k, o]
                    and later(start, offsets, row, time, rank, i, slot[k, o])
                ):
                    slot[k, o] = i
                    first[k, o] = start[i]
                if stamp[k] != instant:
                    stamp[k] = instant
                    touched[touches] = k
                    touches += 1
                if general and k > 0 and not owns[k]:
                    owns[k] = True
                    own[owners] = k
                    owners += 1
        every = stamp[0] == instant
        if every:
            touched[0] = 0
            touched[1 : owners + 1] = own[:owners]
            touches = owners + 1
        for c in range(touches):
            k = touched[c]
            present, arrives, tied = 0, general, general
            for o in range(0 if general else operands):
                s = slot[k, o]
                greater = 0
                for p in range(operands):
                    greater += first[k, p] > first[k, o]
                    tied |= first[k, p] == first[k, o] and p != o and s >= 0
                if s >= 0 and greater < count:
                    members[n, count - 1 - greater] = s
                    arrives |= end[s] == instant
                present += s >= 0
            if tied or (present >= count and not arrives):
                present = choose(
                    k, instant, slot, fresh, last, now, order, members[n], every,
                    key, start, end, offsets, row, role, time, rank,
                )  # fmt: skip
            if present >= count:
                out_key[n] = k
                out_end[n] = instant
                n += 1
        instant = next_end(at, bounds, end)
    return n, owners


@njit
def stored(bounds, carried, key, start, offsets, row, time, rank, keys):
    """slot and first of what is carried."""
    slot = np.full((keys + 1, len(carried)), -1, dtype=np.int32)
    first = np.full((keys + 1, len(carried)), NEVER, dtype=np.int64)
    for o in range(len(carried)):
        for i in range(bounds[o], bounds[o] + carried[o]):
            j = slot[key[i], o]
            if j < 0 or later(start, offsets, row, time, rank, i, j):
                slot[key[i], o] = i
                first[key[i], o] = start[i]
    return slot, first


@njit
def owning(slot):
    """The keys that have an instance, as a list with room for more, and how many they are; marks
    them."""
    owns = np.zeros(len(slot), dtype=np.bool_)
    own = np.empty(len(slot), dtype=np.int32)
    owners = 0
    for k in range(1, len(slot)):
        owns[k] = (slot[k] >= 0).any()
        if owns[k]:
            own[owners] = k
            owners += 1
    return own, owners, owns


@njit
def next_end(at, bounds, end):
    """The earliest end of what has not arrived yet; `ENDED` if there is nothing."""
    instant = np.int64(ENDED)
    for o in range(len(at)):
        if at[o] < bounds[o + 1]:
            instant = min(instant, end[at[o]])
    return instant


@njit
def choose(
    k, instant, slot, fresh, last, now, order, top, every,
    key, start, end, offsets, row, role, time, rank,
):  # fmt: skip
    """Write to `top` the greatest union for key k at `instant`: how many operands it has, 0 if none
    is. `every`: one for every key is found besides."""
    present = 0
    arrived = False
    for o in range(len(last)):
        last[o] = slot[k, o]
        now[o] = fresh[k, o]
        if now[o] >= 0 and end[now[o]] != instant:
            now[o] = -1
        if k > 0:
            s = slot[0, o]
            if s >= 0 and (last[o] < 0 or later(start, offsets, row, time, rank, s, last[o])):
                last[o] = s
            f = fresh[0, o]
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
    return count if k == 0 or not every or (key[top] > 0).any() else 0


@njit
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


@njit
def force(order, now, top, start, offsets, row, role, time, rank):
    """None of the greatest operands arrives now: put one that does in its own place, or in that of
    the least of them, such that the union is greatest."""
    count = len(top)
    base = top.copy()
    best_start = np.int64(NEVER)
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
        rows = united(candidate, offsets, row, role, time, rank)
        first = start[candidate].min()
        better = first > best_start or (
            first == best_start and later_list(rows, best_rows, time, rank)
        )
        if not found or better:
            found = True
            best_start = first
            best_rows = rows
            top[:] = candidate


@njit
def united(members, offsets, row, role, time, rank):
    """The rows of the union of some instances."""
    size = 0
    for m in members:
        size += offsets[m + 1] - offsets[m]
    rows = np.empty(size, dtype=np.int64)
    roles = np.empty(size, dtype=np.int16)
    n = 0
    for m in members:
        for e in range(offsets[m], offsets[m + 1]):
            n = insert(rows, roles, 0, n, row[e], role[e], time, rank)
    return rows[:n]
