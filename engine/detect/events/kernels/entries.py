"""Copying and merging entries: the occurrences that instances are made of.

The entries of an instance are in order of (time, rank, row, role). So the union of two instances is
their entries one after the other if the second starts after the first has ended, and a merge
otherwise.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def, call-arg"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.engine.core.columns.numba_cache import njit
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.kernels.columns import TICK_RANK, Int16
from tidegate.engine.detect.events.kernels.instance_order import after

NOWHERE = -2
"""The partition of an occurrence that nothing refers to."""


class Entries(NamedTuple):
    """The entries of n instances (see `Columns`)."""

    offsets: Int64
    row: Int64
    role: Int16


@njit
def take_entries(columns, index):
    """The entries of the instances at `index`.

    >>> entries = Entries(np.array([0, 1, 3]), np.array([7, 8, 9]), np.array([0, 0, 1]))
    >>> take_entries(entries, np.array([1, 0])).row
    array([8, 9, 7])
    """
    offsets = columns.offsets
    n = len(index)
    out = np.empty(n + 1, dtype=np.int64)
    out[0] = 0
    for i in range(n):
        out[i + 1] = out[i] + offsets[index[i] + 1] - offsets[index[i]]
    row = np.empty(out[n], dtype=np.int64)
    role = np.empty(out[n], dtype=np.int16)
    for i in range(n):
        e = offsets[index[i]]
        for o in range(out[i], out[i + 1]):
            row[o] = columns.row[e]
            role[o] = columns.role[e]
            e += 1
    return Entries(out, row, role)


@njit
def put(entries, at, source, out):
    """Writes the entries of instance source[p] to instance at[p] of `out`. `at` ascends. Both list
    the same runs of neighbouring instances, each run in another order.

    >>> entries = Entries(np.array([0, 1, 3]), np.array([7, 8, 9]), np.array([0, 0, 1]))
    >>> out = Entries(*(column.copy() for column in entries))
    >>> put(entries, np.array([0, 1]), np.array([1, 0]), out)
    >>> out.offsets, out.row
    (array([0, 2, 3]), array([8, 9, 7]))
    """
    for p in range(len(at)):
        o = out.offsets[at[p]]
        for e in range(entries.offsets[source[p]], entries.offsets[source[p] + 1]):
            out.row[o] = entries.row[e]
            out.role[o] = entries.role[e]
            o += 1
        out.offsets[at[p] + 1] = o


@njit
def repeats(offsets, row):
    """Whether an instance has one occurrence in two entries that stand together.

    >>> repeats(np.array([0, 1, 3]), np.array([7, 7, 8]))  # 7 is in two instances
    False
    >>> repeats(np.array([0, 2, 3]), np.array([7, 7, 8]))
    True
    """
    alike = 0
    for e in range(1, len(row)):  # a loop of no jumps: most often there is none
        alike += row[e] == row[e - 1]
    for i in range(len(offsets) - 1 if alike else 0):
        for e in range(offsets[i] + 1, offsets[i + 1]):
            if row[e] == row[e - 1]:
                return True
    return False


@njit
def ticks_among(offsets, row, ranks):
    """Whether a tick is simultaneous with the entry before it of its instance.

    >>> ranks = Ranks(np.array([10, 20, 20]), np.array([0, 0, TICK_RANK]))
    >>> ticks_among(np.array([0, 3]), np.array([0, 1, 2]), ranks)
    True
    >>> ticks_among(np.array([0, 2]), np.array([0, 2]), ranks)
    False
    """
    time, rank = ranks
    for i in range(len(offsets) - 1):
        for e in range(offsets[i] + 1, offsets[i + 1]):
            if rank[row[e]] == TICK_RANK and time[row[e]] == time[row[e - 1]]:
                return True
    return False


@njit
def join_entries(a, b, shift, left, right):
    """The entries of the unions of the instances left[n] of `a` and right[n] of `b`. Each instance
    of `a` ends before its partner starts. The roles of `b` are moved up by `shift`.

    >>> a = Entries(np.array([0, 1, 2]), np.array([4, 5]), np.array([0, 0]))
    >>> b = Entries(np.array([0, 1]), np.array([6]), np.array([0]))
    >>> unions = join_entries(a, b, 1, np.array([1]), np.array([0]))
    >>> unions.row, unions.role
    (array([5, 6]), array([0, 1], dtype=int16))
    """
    n = len(left)
    out = np.empty(n + 1, dtype=np.int64)
    out[0] = 0
    for i in range(n):
        size = a.offsets[left[i] + 1] - a.offsets[left[i]]
        out[i + 1] = out[i] + size + b.offsets[right[i] + 1] - b.offsets[right[i]]
    row = np.empty(out[n], dtype=np.int64)
    role = np.empty(out[n], dtype=np.int16)
    for i in range(n):
        o = out[i]
        for e in range(a.offsets[left[i]], a.offsets[left[i] + 1]):
            row[o] = a.row[e]
            role[o] = a.role[e]
            o += 1
        for e in range(b.offsets[right[i]], b.offsets[right[i] + 1]):
            row[o] = b.row[e]
            role[o] = b.role[e] + shift
            o += 1
    return Entries(out, row, role)


@njit
def insert(out, begin, end, row, role, ranks):
    """Inserts an entry into the sorted list out[begin:end] of rows and roles, unless it is there
    already. Returns the new end of the list.

    >>> ranks = Ranks(np.array([10, 20, 30]), np.array([0, 0, 0]))
    >>> rows, roles = np.array([0, 2, -1]), np.array([0, 0, -1])
    >>> insert((rows, roles), 0, 2, 1, 0, ranks)
    3
    >>> rows
    array([0, 1, 2])
    """
    out_row, out_role = out
    place = end
    while place > begin:
        before = out_row[place - 1]
        if before == row:
            if out_role[place - 1] == role:
                return end
            if out_role[place - 1] < role:
                break
        elif not after(before, row, ranks):
            break
        place -= 1
    for o in range(end, place, -1):
        out_row[o] = out_row[o - 1]
        out_role[o] = out_role[o - 1]
    out_row[place] = row
    out_role[place] = role
    return end + 1


@njit
def settle(key, offsets, row, partition, home):
    """Puts the occurrences of instances where their keys are: those of key code c at partition[c].
    Returns which entries are of an occurrence that has another home already.

    >>> home = np.full(3, NOWHERE)
    >>> key, offsets, row = np.array([1, 2]), np.array([0, 1, 3]), np.array([0, 0, 2])
    >>> settle(key, offsets, row, np.array([-1, 5, 6]), home)
    array([False,  True, False])
    >>> home
    array([ 5, -2,  6])
    """
    elsewhere = np.zeros(len(row), dtype=np.bool_)
    for i in range(len(key)):
        at = partition[key[i]]
        for e in range(offsets[i], offsets[i + 1]):
            if home[row[e]] == NOWHERE:
                home[row[e]] = at
            elsewhere[e] = home[row[e]] != at
    return elsewhere
