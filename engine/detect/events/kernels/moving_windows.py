"""Windows over the rows of each key: which rows a window holds.

Rows stand key by key, those of a key in order of (time, rank). A window is the rows low:high of one
key; the windows of a key stand in order of time, so neither bound ever falls.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def, call-arg"

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tidegate.engine.core.columns.numba_cache import inlined, njit, part
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.kernels.columns import Int32


class Spans(NamedTuple):
    """Windows of n rows. Window i is of the key code key[i], belongs to at[i] (an instant, or the
    number of a tick), and holds the rows low[i]:high[i]."""

    key: Int32
    at: Int64
    low: Int64
    high: Int64

    def some(self, which: Int64, key: int = 0, row: int = 0) -> Spans:
        """Some of them, with key codes and rows that are numbered from there on."""
        codes = self.key[which] + np.int32(key)
        return Spans(codes, self.at[which], self.low[which] + row, self.high[which] + row)


def blocks(bounds: Int64, rows: int) -> Iterator[slice]:
    """Key codes in parts of no more than so many rows, or of one key. Key c has the rows
    bounds[c]:bounds[c + 1].

    >>> [*blocks(np.array([0, 2, 3, 9, 9]), 4)]
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None)]
    """
    code, codes = 0, len(bounds) - 1
    while code < codes:
        fits = int(np.searchsorted(bounds, bounds[code] + rows, side="right")) - 1
        yield slice(code, max(code + 1, fits))
        code = max(code + 1, fits)


@njit
def key_by_key(key, time, rank, row, codes):
    """The places of some rows, key by key, those of a key in order of (time, rank, row); their
    times in that order; and where each key begins. rank[r] is that of occurrence r, row[i] <
    len(rank). It is fast where the rows of each key mostly are in order.

    >>> time, none = np.array([5, 3, 5]), np.zeros(3, dtype=np.int64)
    >>> key_by_key(np.array([1, 1, 1]), time, np.array([9, 0, 7]), np.arange(3), 2)
    (array([1, 2, 0]), array([3, 5, 5]), array([0, 0, 3]))
    """
    bounds = np.zeros(codes + 1, dtype=np.int64)
    for i in range(len(key)):
        bounds[key[i] + 1] += 1
    bounds = np.cumsum(bounds)
    at = bounds[:-1].copy()
    order = np.empty(len(key), dtype=np.int64)
    times = np.empty(len(key), dtype=np.int64)
    for i in range(len(key)):
        o = at[key[i]]
        order[o], times[o] = i, time[i]
        at[key[i]] += 1
    kept, when = np.empty(len(key), dtype=np.int64), np.empty(len(key), dtype=np.int64)
    sorting = order, times, rank, row, kept, when
    for c in range(codes):
        _sort(bounds[c], bounds[c + 1], sorting)
    return order, times, bounds


@part
def _sort(first, until, sorting):
    """Sorts the rows of one key by merging runs, of which most are in order already."""
    width = 1
    while width < until - first:
        for low in range(first, until - width, 2 * width):
            mid = low + width
            order, times = sorting[0], sorting[1]
            if _ahead(order[mid], times[mid], order[mid - 1], times[mid - 1], sorting):
                _merge(low, mid, min(mid + width, until), sorting)
        width *= 2


@part
def _merge(low, mid, high, sorting):
    order, times, _, _, kept, when = sorting
    for i in range(low, mid):
        kept[i], when[i] = order[i], times[i]
    o, p, q = low, low, mid
    while p < mid:
        if q < high and _ahead(order[q], times[q], kept[p], when[p], sorting):
            order[o], times[o] = order[q], times[q]
            q += 1
        else:
            order[o], times[o] = kept[p], when[p]
            p += 1
        o += 1


@inlined
def _ahead(p, time, q, other, sorting):
    """Whether row p is before row q."""
    if time != other:
        return time < other
    rank, row = sorting[2], sorting[3]
    return (rank[row[p]], row[p]) < (rank[row[q]], row[q])


@njit
def changes(bounds, time, fresh, span, watermark):
    """The windows (t - span, t] of each key at the instants t up to the watermark at which rows
    enter or leave; and which rows are still inside after it. Rows that are not `fresh` have entered
    already; none has left.

    Rows at 0 and 4 of one key, span 5: they enter at 0 and 4, and leave at 5 and 9.

    >>> bounds, time = np.array([0, 2]), np.array([0, 4])
    >>> spans, inside = changes(bounds, time, np.array([True, True]), 5, 5)
    >>> spans.at, spans.low, spans.high, inside
    (array([0, 4, 5]), array([0, 0, 1]), array([1, 2, 2]), array([False,  True]))
    """
    room = 2 * len(time)
    key = np.empty(room, dtype=np.int32)
    at = np.empty(room, dtype=np.int64)
    low = np.empty(room, dtype=np.int64)
    high = np.empty(room, dtype=np.int64)
    inside = np.ones(len(time), dtype=np.bool_)
    n = 0
    for c in range(len(bounds) - 1):
        until = bounds[c + 1]
        first = last = bounds[c]
        while last < until and not fresh[last]:
            last += 1
        while first < until:
            now = time[first] + span
            if last < until and time[last] <= now:
                now = time[last]
            if now > watermark:
                break
            while last < until and time[last] == now:
                last += 1
            while first < last and time[first] + span == now:
                inside[first] = False
                first += 1
            key[n], at[n], low[n], high[n] = c, now, first, last
            n += 1
    return Spans(key[:n], at[:n], low[:n], high[:n]), inside


@njit
def rows_at_ticks(begin, end, until):
    """How many rows the windows at the ticks up to the number `until` hold. A row is in those of
    the ticks begin[i] .. end[i]. A float, as it may be more than 64 bits hold.

    >>> float(rows_at_ticks(np.array([1, 2]), np.array([2, 9]), 3))
    4.0
    """
    rows = 0.0
    for i in range(len(begin)):
        rows += max(min(end[i], until) - begin[i] + 1, 0)
    return rows


@njit
def windows_at_ticks(bounds, begin, end, until):
    """How many windows there are at the ticks up to the number `until`, as `held_at_ticks` makes
    them. A float, as they may be more than 64 bits hold.

    >>> float(windows_at_ticks(np.array([0, 2]), np.array([1, 2]), np.array([2, 9]), 3))
    3.0
    """
    windows = 0.0
    for c in range(len(bounds) - 1):
        i = bounds[c]
        while i < bounds[c + 1]:
            i, ticks = _together(begin, end, i, bounds[c + 1], until)
            windows += ticks
    return windows


@njit
def held_at_ticks(bounds, begin, end, until):
    """The windows of each key at the ticks up to the number `until`. A row is in the windows of the
    ticks begin[i] .. end[i]; neither falls within a key. Windows without rows are left out.

    A row in the ticks 1 to 2, and one in the ticks 2 to 3:

    >>> held_at_ticks(np.array([0, 2]), np.array([1, 2]), np.array([2, 3]), 9).at
    array([1, 2, 3])
    """
    room = most = 0
    for c in range(len(bounds) - 1):
        i = bounds[c]
        while i < bounds[c + 1]:
            j, ticks = _together(begin, end, i, bounds[c + 1], until)
            room, most, i = room + ticks, max(most, ticks), j
    key = np.empty(room, dtype=np.int32)
    at = np.empty(room, dtype=np.int64)
    low = np.empty(room, dtype=np.int64)
    high = np.empty(room, dtype=np.int64)
    enter = np.zeros(most + 1, dtype=np.int64)  # rows by the tick at which they do
    leave = np.zeros(most + 1, dtype=np.int64)
    n = 0
    for c in range(len(bounds) - 1):
        i = bounds[c]
        while i < bounds[c + 1]:
            j, ticks = _together(begin, end, i, bounds[c + 1], until)
            tick, first, last = begin[i], i, i
            for r in range(i, j if ticks else i):
                enter[min(begin[r] - tick, ticks)] += 1
                leave[min(end[r] + 1 - tick, ticks)] += 1
            for t in range(ticks):
                first, last = first + leave[t], last + enter[t]
                key[n], at[n], low[n], high[n] = c, tick + t, first, last
                enter[t] = leave[t] = 0
                n += 1
            enter[ticks] = leave[ticks] = 0
            i = j
    return Spans(key, at, low, high)


@inlined
def _together(begin, end, i, stop, until):
    """Up to which row the windows of the rows from i on follow each other without an empty one
    between; and how many windows that is, up to the tick `until`."""
    j = i + 1
    while j < stop and begin[j] <= end[j - 1] + 1:
        j += 1
    return j, max(min(end[j - 1], until) - begin[i] + 1, 0)


@njit
def by_tick(spans, ticks, time, row, role):
    """The windows in order of their ticks, which are numbered from 0 on, so many; those of one tick
    in the order that they have: how many each tick has; then of each window its key, the time of
    its first row, and its entries as offsets, rows and roles.

    >>> spans = Spans(np.array([1, 2]), np.array([1, 0]), np.array([0, 1]), np.array([1, 3]))
    >>> by_tick(spans, 2, np.array([5, 3, 4]), np.arange(7, 10), np.zeros(3))[:-1]
    (array([1, 1]), array([2, 1]), array([3, 5]), array([0, 2, 3]), array([8, 9, 7]))
    """
    key, at, low, high = spans
    count = np.zeros(ticks, dtype=np.int64)
    place = np.zeros(ticks + 1, dtype=np.int64)
    entry = np.zeros(ticks + 1, dtype=np.int64)
    for i in range(len(at)):
        count[at[i]] += 1
        entry[at[i] + 1] += high[i] - low[i]
    for t in range(ticks):
        place[t + 1] = place[t] + count[t]
        entry[t + 1] += entry[t]
    keys = np.empty_like(key)
    start = np.empty(len(at), dtype=np.int64)
    offsets = np.empty(len(at) + 1, dtype=np.int64)
    rows = np.empty(entry[ticks], dtype=row.dtype)
    roles = np.empty(entry[ticks], dtype=role.dtype)
    offsets[len(at)] = entry[ticks]
    for i in range(len(at)):  # key by key, so that rows are read one after the other
        o, e = place[at[i]], entry[at[i]]
        keys[o], start[o], offsets[o] = key[i], time[low[i]], e
        for p in range(low[i], high[i]):
            rows[e], roles[e] = row[p], role[p]
            e += 1
        place[at[i]], entry[at[i]] = o + 1, e
    return count, keys, start, offsets, rows, roles


@njit
def crossings(key, fire, rearm, filled, disarmed):
    """Which windows fire, of windows that stand key by key; disarmed[c] says whether key c was, and
    is set to whether it is now.

    Armed, a window of which `fire` is true, and that is `filled`, fires, and disarms its key.
    Disarmed, one of which `rearm` is true arms it, and does not fire.

    >>> disarmed = np.array([False])
    >>> fire, rearm = np.array([True, True, False, True]), np.array([False, False, True, False])
    >>> crossings(np.zeros(4, dtype=np.int32), fire, rearm, np.ones(4, dtype=np.bool_), disarmed)
    array([0, 3])
    >>> disarmed
    array([ True])
    """
    found = np.empty(len(key), dtype=np.int64)
    n = 0
    for i in range(len(key)):
        if disarmed[key[i]]:
            disarmed[key[i]] = not rearm[i]
        elif fire[i] and filled[i]:
            disarmed[key[i]] = True
            found[n] = i
            n += 1
    return found[:n]


@njit
def entries_of(low, high, order, row, role):
    """The entries of some windows: their offsets, rows and roles. Row p of the windows has row and
    role order[p].

    >>> entries_of(np.array([0, 1]), np.array([1, 3]), np.arange(3), np.arange(7, 10), np.zeros(3))
    (array([0, 1, 3]), array([7, 8, 9]), array([0., 0., 0.]))
    """
    offsets = np.zeros(len(low) + 1, dtype=np.int64)
    for i in range(len(low)):
        offsets[i + 1] = offsets[i] + high[i] - low[i]
    rows = np.empty(offsets[-1], dtype=row.dtype)
    roles = np.empty(offsets[-1], dtype=role.dtype)
    e = 0
    for i in range(len(low)):
        for p in range(low[i], high[i]):
            rows[e], roles[e] = row[order[p]], role[order[p]]
            e += 1
    return offsets, rows, roles
