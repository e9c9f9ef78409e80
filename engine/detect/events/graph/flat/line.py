"""What a scan reads: the line of occurrences, and the layout of the stages.

The kernel `arrange` makes the line of a step's arrivals. For `a ; b` (sources 0 and 1), key codes 1
and 2, and another event type between:

    arrivals: event  time  code          position  source  code  time
              a      5     1       ->    0         1 (b)   1     5     b is of a later stage: it
              b      5     1             1         0 (a)   1     5     comes first, and meets no a
              x      6     1             2         0 (a)   2     7     of its instant
              a      7     2             3         1 (b)   1     9
              b      9     1

>>> sources = Sources(
...     bounds=np.array([0, 1, 2, 2]), source=np.array([0, 1], dtype=np.int16),
...     order=np.array([0, 1]), absent=-1, apart=False,
... )
>>> arrivals = (
...     np.array([0, 1, 2, 0, 1]), np.array([5, 5, 6, 7, 9]), np.array([1, 1, 1, 2, 1]), 0,
... )
>>> more = Columns(*[np.empty(0)] * 6)
>>> source, code, time, row, _, _ = arrange(arrivals, more, sources, np.zeros(5), 3)
>>> source.tolist(), code.tolist(), time.tolist(), row.tolist()
([1, 0, 0, 1], [1, 1, 2, 1], [5, 5, 7, 9], [1, 0, 3, 4])
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidegate.engine.core.columns.numba_cache import inlined, njit, part
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.kernels.columns import LAST, NEVER
from tidegate.engine.detect.events.kernels.table_rows import counts

FROM, TO, COUNT, REPEATED, LIMIT = range(5)
"""Columns of a layout's table."""


class Layout(NamedTuple):
    """The stages of a flat expression as arrays.

    place[source]     the place of a source; a source is a leaf of the expression
    stage[place]      the stage of a place
    kind[place]       the number of the place's event types; equal event types have equal numbers
    table[s, FROM]    the first place of stage s
    table[s, TO]      the place after its last
    table[s, COUNT]   how many of its places an instance fills; REPEATED: how many occurrences of
                      its only place
    table[s, LIMIT]   the longest span of an instance of the stages up to s, microseconds

    `a ; any(2, b, c)` without a `within`:

        place   0 1 2        FROM  TO  COUNT  REPEATED  LIMIT
        stage   0 1 1           0   1      1         0  ENDLESS
        kind    0 1 2           1   3      2         0  ENDLESS
    """

    place: Int64
    stage: Int64
    kind: Int64
    table: Int64


class Line(NamedTuple):
    """Occurrences in the order of a scan: `carried` entries of carried instances, then arrivals.

    source, code, time, row   of each position; codes are below `codes`
    rows                      the number of the step's rows if one occurrence may be in several
                              stages, and so on several positions; else 0
    """

    source: npt.NDArray[np.int16]
    code: npt.NDArray[np.int32]
    time: Int64
    row: Int64
    carried: int
    codes: int
    rows: int


class Sources(NamedTuple):
    """Which sources the arrivals of an event type are of: those of event type e are
    source[bounds[e]:bounds[e + 1]]. At one instant the source with the highest `order` comes first.

    An occurrence of the source `absent` (-1: none) ends what its key has begun; `apart`: what is
    simultaneous with it counts for nothing.
    """

    bounds: Int64
    source: npt.NDArray[np.int16]
    order: Int64
    absent: int
    apart: bool


@njit
def arrange(arrivals, more, sources, rank, codes):
    """The arrivals in the order of a scan: source, code, time, row; and real[code], last[key].
    Simultaneous ones are in order of source, then of (rank, row). `more`, points in order of time,
    are of the last source.

    `absent` occurrences are not on the line. Later occurrences of their key have a new code, so a
    scan never joins them with earlier ones: real[code] is the key, last[key] the key's last code.
    """
    count, bounds = counts(arrivals[0], len(sources.bounds) - 1), sources.bounds
    room, ends = len(more.key), 0
    for e in range(len(count)):
        room += count[e] * (bounds[e + 1] - bounds[e])
        if bounds[e] < bounds[e + 1] and sources.source[bounds[e]] == sources.absent:
            ends = count[e]
    out = (
        np.empty(room, dtype=np.int16),
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
    )
    spare = (
        np.empty(room, dtype=np.int16),
        np.empty(room, dtype=np.int32),
        np.empty(room, dtype=np.int64),
    )
    real = np.arange(codes + ends)
    last = np.arange(codes)
    ended = np.full(codes if sources.absent >= 0 else 0, NEVER, dtype=np.int64)
    o, used = _arrange(arrivals, more, sources, rank, real, last, ended, out, spare)
    return out[0][:o], out[1][:o], out[2][:o], out[3][:o], real[:used], last


@part
def _arrange(arrivals, more, sources, rank, real, last, ended, out, spare):
    event, time, key, begin = arrivals
    i, m, o, used = 0, 0, 0, len(last)
    while i < len(event) or m < len(more.key):
        first = o
        now = time[i] if i < len(event) else LAST
        now = min(now, more.end[m]) if m < len(more.key) else now
        while i < len(event) and time[i] == now:
            for s in range(sources.bounds[event[i]], sources.bounds[event[i] + 1]):
                o = _put(out, o, sources.source[s], key[i], now, begin + i)
            i += 1
        while m < len(more.key) and more.end[m] == now:
            o = _put(out, o, len(sources.order) - 1, more.key[m], now, more.row[m])
            m += 1
        if o > first + 1:
            _sort(first, o, sources.order, rank, out, spare)
        if sources.absent >= 0:
            o, used = _end(first, o, sources, used, real, last, ended, out)
    return o, used


@inlined
def _put(out, o, source, code, time, row):
    out[0][o], out[1][o], out[2][o], out[3][o] = source, code, time, row
    return o + 1


@part
def _sort(first, until, order, rank, out, spare):
    """Sorts the positions of one instant by merging runs, of which most are in order already."""
    source, _, _, row = out
    width = 1
    while width < until - first:
        for low in range(first, until - width, 2 * width):
            mid = low + width
            if _ahead(order, rank, source[mid], row[mid], source[mid - 1], row[mid - 1]):
                _merge(low, mid, min(mid + width, until), order, rank, out, spare)
        width *= 2


@part
def _merge(low, mid, high, order, rank, out, spare):
    """Merges the positions low:mid and mid:high. `spare` has room for the first of them."""
    source, code, _, row = out
    for i in range(low, mid):
        spare[0][i - low], spare[1][i - low], spare[2][i - low] = source[i], code[i], row[i]
    o, p, q = low, 0, mid
    while p < mid - low:
        if q < high and _ahead(order, rank, source[q], row[q], spare[0][p], spare[2][p]):
            source[o], code[o], row[o] = source[q], code[q], row[q]
            q += 1
        else:
            source[o], code[o], row[o] = spare[0][p], spare[1][p], spare[2][p]
            p += 1
        o += 1


@inlined
def _ahead(order, rank, source, row, than, its):
    """Whether an occurrence is before another of its instant."""
    one, other = order[source], order[than]
    return one > other or (one == other and (rank[row], row) < (rank[its], its))


@part
def _end(first, until, sources, used, real, last, ended, out):
    """Ends what keys have begun, at one instant. Returns where its positions end then, and how many
    codes are used."""
    source, code, time, row = out
    o = first
    for i in range(first, until):
        k = code[i]
        if source[i] == sources.absent:
            ended[k] = time[i]
            last[k] = used
            real[used] = k
            used += 1
        elif not sources.apart or ended[k] != time[i]:
            source[o], code[o], time[o], row[o] = source[i], last[k], time[i], row[i]
            o += 1
    return o, used


@part
def entries_in_order(offsets, row, role, time, rank):
    """Whether the entries of each instance are in order of (time, rank, row, role)."""
    for n in range(len(offsets) - 1):
        for e in range(offsets[n] + 1, offsets[n + 1]):
            a, b = row[e - 1], row[e]
            if time[a] < time[b]:
                continue
            if (time[a], rank[a], a, role[e - 1]) > (time[b], rank[b], b, role[e]):
                return False
    return True
