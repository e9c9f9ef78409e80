"""What a scan reads: the line of occurrences, and the layout of the stages.

The kernel `merge` makes the line of what arrives. For `a ; b` (sources 0 and 1) and key codes 1, 2

    source  time  code          position  source  code  time
    0 (a)   5, 7  1, 2    ->    0         1 (b)   1     5     b is of a later stage: it comes
    1 (b)   5, 9  1, 1          1         0 (a)   1     5     first, and meets no a of its instant
                                2         0 (a)   2     7
                                3         1 (b)   1     9

>>> sources = Sources(
...     bounds=np.array([0, 2, 4]), order=np.array([0, 1]), code=np.array([1, 2, 1, 1]),
...     time=np.array([5, 7, 5, 9]), row=np.arange(4),
... )
>>> source, code, time, row, _, _ = merge(sources, np.zeros(4), -1, False, 3)
>>> source.tolist(), code.tolist(), time.tolist()
([1, 0, 0, 1], [1, 1, 2, 1], [5, 5, 7, 9])
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
    """The arrivals of all sources one after the other. Source s has bounds[s]:bounds[s + 1], in
    order of (time, rank, row). At one instant the source with the highest `order` comes first."""

    bounds: Int64
    order: Int64
    code: npt.NDArray[np.int32]
    time: Int64
    row: Int64


class Ahead(NamedTuple):
    """The next occurrence of each source: its place and its instant. The instant is `LAST` if there
    is none."""

    at: Int64
    time: Int64


@njit
def merge(sources, rank, absent, apart, codes):
    """The arrivals in the order of a scan: source, code, time, row; and real[code], last[key].

    An occurrence of the source `absent` (-1: none) ends what its key has begun. It is not on the
    line. Later occurrences of its key have a new code, so a scan never joins them with earlier
    ones: real[code] is the key, last[key] the key's last code. `apart`: occurrences simultaneous
    with it are left out too.
    """
    n = len(sources.code)
    out_source = np.empty(n, dtype=np.int16)
    out_code = np.empty(n, dtype=np.int32)
    out_time = np.empty(n, dtype=np.int64)
    out_row = np.empty(n, dtype=np.int64)
    spare = sources.bounds[absent + 1] - sources.bounds[absent] if absent >= 0 else 0
    real = np.arange(codes + spare)
    last = np.arange(codes)
    ended = np.full(codes if absent >= 0 else 0, NEVER, dtype=np.int64)
    ahead = Ahead(sources.bounds[:-1].copy(), np.full(len(sources.order), LAST))
    for s in range(len(ahead.at)):
        _advance(sources, ahead, s, 0)
    out = out_source, out_code, out_time, out_row
    o, used = _merge(sources, rank, absent, apart, ahead, real, last, ended, out)
    return out_source[:o], out_code[:o], out_time[:o], out_row[:o], real[:used], last


@part
def _merge(sources, rank, absent, apart, ahead, real, last, ended, out):
    out_source, out_code, out_time, out_row = out
    _, _, code, time, row = sources
    o, used = 0, len(last)
    for _ in range(len(code)):
        s = _next(sources, rank, ahead)
        i = ahead.at[s]
        _advance(sources, ahead, s, 1)
        k = code[i]
        if s == absent:
            ended[k] = time[i]
            last[k] = used
            real[used] = k
            used += 1
        elif absent < 0 or not apart or ended[k] != time[i]:
            out_source[o] = s
            out_code[o] = last[k] if absent >= 0 else k
            out_time[o] = time[i]
            out_row[o] = row[i]
            o += 1
    return o, used


@inlined
def _advance(sources, ahead, s, steps):
    """Moves a source on by `steps` occurrences."""
    i = ahead.at[s] + steps
    ahead.at[s] = i
    ahead.time[s] = sources.time[i] if i < sources.bounds[s + 1] else LAST


@inlined
def _next(sources, rank, ahead):
    """The source whose occurrence comes next."""
    s, now, simultaneous = 0, ahead.time[0], 0
    for q in range(1, len(ahead.time)):  # no jump: it could not be foreseen
        t = ahead.time[q]
        simultaneous = 0 if t < now else simultaneous + (t == now)
        s = q if t < now else s
        now = min(now, t)
    return _first(sources, rank, ahead, now) if simultaneous else s


@part
def _first(sources, rank, ahead, now):
    """The source whose occurrence comes first among those at the instant `now`."""
    _, order, _, _, row = sources
    s = -1
    for q in range(len(ahead.time)):
        if ahead.time[q] != now:
            continue
        if s >= 0:
            i, j = ahead.at[q], ahead.at[s]
            if order[q] < order[s]:
                continue
            if order[q] == order[s] and (rank[row[i]], row[i]) > (rank[row[j]], row[j]):
                continue
        s = q
    return s


@part
def in_order(time, row, rank):
    """Whether occurrences, which are in order of time, are also in order of (time, rank, row).

    >>> bool(in_order(np.array([5, 5]), np.array([0, 1]), np.array([9, 3])))
    False
    """
    for i in range(1, len(time)):
        if time[i] == time[i - 1]:
            a, b = row[i - 1], row[i]
            if (rank[a], a) > (rank[b], b):
                return False
    return True


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
