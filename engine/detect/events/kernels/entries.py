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


class Entries(NamedTuple):
    """The entries of n instances (see `Columns`)."""

    offsets: Int64
    row: Int64
    role: Int16


@njit
def take_entries(columns, index):
    """The entries of the instances at `index`."""
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
    """Writes the entries of the instances `source` to the places `at`, which ascend. Places and
    sources are the same runs of instances, each in another order."""
    for p in range(len(at)):
        o = out.offsets[at[p]]
        for e in range(entries.offsets[source[p]], entries.offsets[source[p] + 1]):
            out.row[o] = entries.row[e]
            out.role[o] = entries.role[e]
            o += 1
        out.offsets[at[p] + 1] = o


@njit
def repeats(offsets, row):
    """Whether an instance has an occurrence twice, one after the other."""
    for i in range(len(offsets) - 1):
        for e in range(offsets[i] + 1, offsets[i + 1]):
            if row[e] == row[e - 1]:
                return True
    return False


@njit
def ticks_among(offsets, row, ranks):
    """Whether a tick is simultaneous with another entry of its instance."""
    time, rank = ranks
    for i in range(len(offsets) - 1):
        for e in range(offsets[i] + 1, offsets[i + 1]):
            if rank[row[e]] == TICK_RANK and time[row[e]] == time[row[e - 1]]:
                return True
    return False


@njit
def join_entries(a, b, shift, left, right):
    """The entries of the unions of a[left[n]] and b[right[n]], where every occurrence of a is
    before those of b. The roles of b are moved up by `shift`."""
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
    """Inserts an entry in its place into the list out[begin:end] of rows and roles, unless it is
    there; returns where the list ends then."""
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
