"""The order of detections that end together: by their starts, then by their constituents.

Constituents are compared as lists: by time, event type and parameters of each in turn. A list is
before one that continues it. Lists of equal values are in order of their rows.

Two detections start at 5; their second constituents, at 7 and 6, decide:

>>> lists = Lists(
...     start=np.array([5, 5]), offsets=np.array([0, 2, 4]), row=np.array([0, 2, 0, 1]),
...     time=np.array([5, 7, 5, 6]), name=np.zeros(4, np.int64), own=np.zeros(4, np.int64),
... )
>>> in_order(lists, np.array([0, 2]))
array([1, 0])
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.engine.core.columns.numba_cache import njit, part
from tidegate.engine.core.values import Int64


class Lists(NamedTuple):
    """Detections and their constituents.

    start[i]                      of detection i
    offsets[i]                    where its constituents begin; they end at offsets[i + 1]
    row[e]                        the occurrence that is constituent e
    time[e], name[e], own[e]      its instant, event type and parameters as numbers in their order
    """

    start: Int64
    offsets: Int64
    row: Int64
    time: Int64
    name: Int64
    own: Int64


@njit
def in_order(lists, bounds):
    """The detections with those of each run bounds[r]:bounds[r + 1] in order."""
    order, spare = np.arange(len(lists.start)), np.empty(len(lists.start), dtype=np.int64)
    for r in range(len(bounds) - 1):
        _merge(lists, order[bounds[r] : bounds[r + 1]], spare)
    return order


@part
def _merge(lists, order, spare):
    """Sorts a run by merging sorted ones, each twice as long as those before."""
    count, width = len(order), 1
    while width < count:
        for low in range(0, count, 2 * width):
            mid, high = min(low + width, count), min(low + 2 * width, count)
            p, q = low, mid
            for m in range(low, high):
                if q == high or (p < mid and not _before(lists, order[q], order[p])):
                    spare[m] = order[p]
                    p += 1
                else:
                    spare[m] = order[q]
                    q += 1
        for m in range(count):
            order[m] = spare[m]
        width *= 2


@part
def _before(lists, i, j):
    if lists.start[i] != lists.start[j]:
        return lists.start[i] < lists.start[j]
    a, b = lists.offsets[i], lists.offsets[j]
    left, right = lists.offsets[i + 1] - a, lists.offsets[j + 1] - b
    for e in range(min(left, right)):
        if lists.time[a + e] != lists.time[b + e]:
            return lists.time[a + e] < lists.time[b + e]
        if lists.name[a + e] != lists.name[b + e]:
            return lists.name[a + e] < lists.name[b + e]
        if lists.own[a + e] != lists.own[b + e]:
            return lists.own[a + e] < lists.own[b + e]
    if left != right:
        return left < right
    for e in range(left):
        if lists.row[a + e] != lists.row[b + e]:
            return lists.row[a + e] < lists.row[b + e]
    return False
