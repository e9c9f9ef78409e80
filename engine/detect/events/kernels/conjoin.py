"""The loop of `and`, `all` and `any`: the greatest union of one instance each of m operands.

All operands stand in one table of instances, one operand after the other. The loop goes from
instant to instant and keeps for each key and operand:

    slot[key, o]    the greatest instance of operand o so far, -1 = none
    first[key, o]   its start, `NEVER` = none
    fresh[key, o]   the greatest that arrived at the operand's latest instant, -1 = none

Example: `a and b` of one key, a at 10, b at 20, a at 30.

    instant   slot a   slot b   found
    10            10        -   nothing
    20            10       20   (10, 20)
    30            30       20   (20, 30)

The greatest union is the union of the greatest instances, as a union with the same instance keeps
the order of S1. Some member must arrive now. If none does, the greatest that arrives now takes the
place of another member (`force`).
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def, call-arg"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.engine.core.columns.numba_cache import njit
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.kernels.columns import (
    LAST,
    NEVER,
    Bools,
    Columns,
    Int32,
    grow,
    order_of,
)
from tidegate.engine.detect.events.kernels.entries import insert
from tidegate.engine.detect.events.kernels.instance_order import later, later_list


class Operands(NamedTuple):
    """The operands in one table: operand o has the instances bounds[o]:bounds[o + 1], in order of
    end. The first carried[o] of these were carried from the step before."""

    bounds: Int64
    carried: Int64
    columns: Columns


class Unions(NamedTuple):
    """Unions of `count` instances each. Union n is of key[n], ends at end[n] and has the members
    members[count * n : count * (n + 1)]."""

    key: Int32
    end: Int64
    members: Int32


class State(NamedTuple):
    """What a conjunction keeps.

    slot, first, fresh  [key, operand], see the module
    general             whether some instance has the key code 0 and so counts for every key
    at[o]               the next instance of operand o to arrive
    own[:owners], owns  the keys that have an instance, as a list and as marks
    stamp[key]          the latest instant at which an instance of the key arrived
    touched             the keys of which an instance arrives now
    last, now, order    scratch of `choose`: the greatest instance of each operand, the greatest
                        that arrives now, the operands sorted by the former
    """

    slot: Int32
    first: Int64
    fresh: Int32
    general: bool
    at: Int64
    own: Int32
    owns: Bools
    stamp: Int64
    touched: Int32
    last: Int32
    now: Int32
    order: Int32


@njit
def conjoin(operands, count, ranks, keys):
    """For each (key, instant) with an arrival the greatest union of instances of `count` operands,
    at least one of which arrives then; and slot[key, operand] at the end.

    `a and b` with a at 10 and 30, b at 20. The table has the a's, then the b:

    >>> at = np.array([10, 30, 20])
    >>> role = np.array([0, 0, 1])
    >>> table = Columns(np.array([1, 1, 1]), at, at, np.arange(4), np.arange(3), role)
    >>> operands = Operands(np.array([0, 2, 3]), np.array([0, 0]), table)
    >>> unions, slot = conjoin(operands, 2, Ranks(at, np.zeros(3)), 1)
    >>> unions.end, unions.members.reshape(-1, 2).tolist()
    (array([20, 30]), [[0, 2], [2, 1]])
    >>> slot[1]
    array([1, 2], dtype=int32)
    """
    bounds, columns = operands.bounds, operands.columns
    state, owners = initial(operands, ranks, keys)
    at = state.at
    key = np.empty(0, dtype=np.int32)
    end = np.empty(0, dtype=np.int64)
    members = np.empty(0, dtype=np.int32)
    n = np.int64(0)
    while next_end(at, bounds, columns.end) != LAST:
        room = 2 * n + keys + 1
        for o in range(len(at)):
            room += bounds[o + 1] - at[o]
        key, end, members = grow(key, room), grow(end, room), grow(members, count * room)
        found = Unions(key, end, members)
        n, owners = walk(operands, ranks, state, owners, count, found, n)
    return Unions(key[:n], end[:n], members[: count * n]), state.slot


@njit
def initial(operands, ranks, keys):
    """The state after the carried instances, and how many keys have one."""
    bounds, carried, columns = operands
    by = order_of(columns, ranks)
    shape = (keys + 1, len(carried))
    slot = np.full(shape, -1, dtype=np.int32)
    first = np.full(shape, NEVER, dtype=np.int64)
    own, owns = np.empty(keys + 1, dtype=np.int32), np.zeros(keys + 1, dtype=np.bool_)
    at = np.empty(len(carried), dtype=np.int64)
    general, owners = False, np.int64(0)
    for k in columns.key:
        general |= k == 0
    for o in range(len(carried)):
        at[o] = bounds[o] + carried[o]
        for i in range(bounds[o], at[o]):
            k = columns.key[i]
            if slot[k, o] < 0 or later(by, i, slot[k, o]):
                slot[k, o] = i
                first[k, o] = columns.start[i]
            if k > 0 and not owns[k]:
                owns[k] = True
                own[owners] = k
                owners += 1
    state = State(
        slot, first, np.full(shape, -1, dtype=np.int32), general, at, own, owns,
        np.full(keys + 1, NEVER, dtype=np.int64), np.empty(keys + 1, dtype=np.int32),
        np.empty(len(at), dtype=np.int32), np.empty(len(at), dtype=np.int32),
        np.empty(len(at), dtype=np.int32),
    )  # fmt: skip
    return state, owners


@njit
def next_end(at, bounds, end):
    """The earliest end of the instances that have not arrived yet; `LAST` if there are none."""
    instant = np.int64(LAST)
    for o in range(len(at)):
        if at[o] < bounds[o + 1]:
            instant = min(instant, end[at[o]])
    return instant


@njit
def walk(operands, ranks, state, owners, count, found, n):
    """Goes from instant to instant while `found`, which has n unions, has room. Returns the number
    of unions and of owners then. It is one long loop: to call a function with bundles of arrays
    takes as long as an arrival, so only rare cases are functions."""
    bounds, columns, members = operands.bounds, operands.columns, found.members
    key, start, end, by = columns.key, columns.start, columns.end, order_of(columns, ranks)
    slot, first, fresh, at = state.slot, state.first, state.fresh, state.at
    own, owns, stamp, touched = state.own, state.owns, state.stamp, state.touched
    general = state.general
    instant = next_end(at, bounds, end)
    while instant != LAST and n + len(touched) <= len(found.key):
        touches = 0
        for o in range(len(at)):
            while at[o] < bounds[o + 1] and end[at[o]] == instant:
                i = at[o]
                k, s = key[i], start[i]
                at[o] += 1
                fresh[k, o] = i
                alike = s == first[k, o]
                if s > first[k, o] or (alike and later(by, i, slot[k, o])):
                    slot[k, o] = i
                    first[k, o] = s
                if stamp[k] != instant:
                    stamp[k] = instant
                    touched[touches] = k
                    touches += 1
                if general and k > 0 and not owns[k]:
                    owns[k] = True
                    own[owners] = k
                    owners += 1
        every = general and stamp[0] == instant
        if every:
            touches = owners + 1
            touched[0] = 0
            touched[1:touches] = own[:owners]
        for c in range(touches):
            k = touched[c]
            present, arrives, tied = 0, general, general
            for o in range(0 if general else len(at)):
                m = slot[k, o]
                greater = 0
                for p in range(len(at)):
                    greater += first[k, p] > first[k, o]
                    tied |= first[k, p] == first[k, o] and p != o and m >= 0
                if m >= 0 and greater < count:
                    members[count * (n + 1) - 1 - greater] = m
                    arrives |= end[m] == instant
                present += m >= 0
            if tied or (present >= count and not arrives):
                top = members[count * n : count * (n + 1)]
                present = choose(k, instant, columns, ranks, state, top, every)
            if present >= count:
                found.key[n], found.end[n] = k, instant
                n += 1
        instant = next_end(at, bounds, end)
    return n, owners


@njit
def choose(k, instant, columns, ranks, state, top, every):
    """Writes the greatest union for key k at `instant` to `top`. Returns how many members it has, 0
    if there is none. `every`: the union for every key is found by itself, so a union without an
    instance of key k is left out here."""
    last, now, order, by = state.last, state.now, state.order, order_of(columns, ranks)
    present, arrived = 0, False
    for o in range(len(last)):
        last[o], now[o] = state.slot[k, o], -1
        f = state.fresh[k, o]
        if f >= 0 and columns.end[f] == instant:
            now[o] = f
        if k > 0:
            s, f = state.slot[0, o], state.fresh[0, o]
            if s >= 0 and (last[o] < 0 or later(by, s, last[o])):
                last[o] = s
            arrives = f >= 0 and columns.end[f] == instant
            if arrives and (now[o] < 0 or later(by, f, now[o])):
                now[o] = f
        present += last[o] >= 0
        arrived |= now[o] >= 0
    count = len(top)
    if present < count or not arrived:
        return 0
    descending(last, order, by)
    arrives, own = False, False
    for m in range(count):
        top[m] = last[order[m]]
        arrives |= columns.end[top[m]] == instant
    if not arrives:
        force(order[:present], now, top, columns, ranks)
    for m in range(count):
        own |= columns.key[top[m]] > 0
    return count if k == 0 or not every or own else 0


@njit
def descending(last, order, by):
    """Sorts the operands that have an instance into `order`: the greatest first, by insertion."""
    n = 0
    for o in range(len(last)):
        if last[o] < 0:
            continue
        p = n
        while p > 0 and later(by, last[o], last[order[p - 1]]):
            order[p] = order[p - 1]
            p -= 1
        order[p] = o
        n += 1


@njit
def force(order, now, top, columns, ranks):
    """Replaces a member of `top`, none of which arrives now, by an instance that does. That takes
    the place of its own operand's instance, or else of the least member. Of all such unions the
    greatest is written to `top`."""
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
        rows, first = united(candidate, columns, ranks)
        better = first > best_start or (first == best_start and later_list(rows, best_rows, ranks))
        if not found or better:
            found = True
            best_start = first
            best_rows = rows
            for m in range(count):
                top[m] = candidate[m]


@njit
def united(members, columns, ranks):
    """The rows and the start of the union of some instances."""
    size, first = 0, np.int64(LAST)
    for m in members:
        size += columns.offsets[m + 1] - columns.offsets[m]
        first = min(first, columns.start[m])
    out = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int16)
    n = 0
    for m in members:
        for e in range(columns.offsets[m], columns.offsets[m + 1]):
            n = insert(out, 0, n, columns.row[e], columns.role[e], ranks)
    return out[0][:n], first
