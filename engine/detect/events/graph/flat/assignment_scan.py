"""Assignments: which occurrences fill the places of a flat expression. A line has the occurrences
key by key, each key's in order of time; at one instant those of the last stage come first.

For `a ; b within 10` (sources, places and stages 0 and 1) of one key, with a@1 a@2 b@4 a@5 b@6 on
positions 0 .. 4:

>>> line = Line(
...     np.array([0, 0, 1, 0, 1], dtype=np.int16), np.zeros(5, dtype=np.int32),
...     np.array([1, 2, 4, 5, 6]), np.arange(5), 0, 1, 0,
... )
>>> place, ends = np.array([0, 1]), line.source == 1
>>> before = earlier(line, place, np.ones(5, dtype=np.bool_), 2)
>>> before.tolist()
[[-1, 0, 1, 1, 3], [-1, -1, -1, 2, 2]]
>>> walk = Walk(place, ends, np.array([1, 0]), np.arange(3), np.array([10, 10]), before)
>>> none = np.empty(0, np.int64)
>>> compared = Comparisons(none.reshape(0, 2), none, none.reshape(0, 5))
>>> most, spent = (100, 100, 100), (np.array([0]), np.array([0]))
>>> found, until, _ = assignments(line, walk, compared, 0, most, spent)
>>> found.tolist(), until
([[1, 0, 3, 1, 0], [2, 2, 4, 4, 4]], 5)

Of values 1 5 3 2 4 on these positions a comparison `a < b` leaves three:

>>> compared = Comparisons(np.array([[0, 1]]), np.array([LESS]), np.array([[1, 5, 3, 2, 4]]))
>>> assignments(line, walk, compared, 0, most, spent)[0].tolist()
[[0, 3, 0], [2, 4, 4]]
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidegate.engine.core.columns.numba_cache import inlined, njit, part
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.flat.line import Line as Line
from tidegate.engine.detect.events.kernels.columns import Bools

DONE, FULL, TOO_MANY = range(3)
LESS, EQUAL, MORE = 1, 2, 4
"""The signs of a comparison; their sums are `<=` and so on."""


class Walk(NamedTuple):
    """How assignments are made.

    place    the place of each source
    ends     whether an assignment may end at a position
    steps    the stages of an assignment's occurrences, from the last one back
    bounds   the places of stage s are bounds[s] .. bounds[s + 1] - 1
    limits   the longest span up to each stage, microseconds
    before   as `earlier` has it
    """

    place: Int64
    ends: Bools
    steps: Int64
    bounds: Int64
    limits: Int64
    before: npt.NDArray[np.int32]


class Comparisons(NamedTuple):
    """Comparisons of values in two places, all of which are true of each assignment.

    sides[t]       the places of its left and its right side
    signs[t]       how they may compare
    values[t, p]   the value of a position in one of these places, as a number in their order
    """

    sides: npt.NDArray[np.int64]
    signs: Int64
    values: npt.NDArray[np.int64]


@njit
def key_by_key(line, fits, values, packed):
    """A line with the positions of each key beside each other, whether these fit, and their values;
    and which positions they were. `packed` has room for what is known of a position in a row: a
    position is moved as a whole, to one place in memory."""
    size = len(line.code)
    bounds = np.zeros(line.codes + 1, dtype=np.int64)
    for c in line.code:
        bounds[c + 1] += 1
    bounds = np.cumsum(bounds)
    order, code = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
    for c in range(line.codes):
        code[bounds[c] : bounds[c + 1]] = c
    _pack(line, fits, values, bounds, order, packed)
    source, time = np.empty(size, dtype=np.int16), np.empty(size, dtype=np.int64)
    row, own = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.bool_)
    of_each = np.empty(values.shape, dtype=np.int64)
    for i in range(size):
        time[i], row[i] = packed[i, 0], packed[i, 1]
        source[i], own[i] = packed[i, 2] >> 1, packed[i, 2] & 1
        for t in range(len(values)):
            of_each[t, i] = packed[i, 3 + t]
    by_key = Line(source, code, time, row, line.carried, line.codes, line.rows)
    return by_key, own, of_each, order


@part
def _pack(line, fits, values, at, order, packed):
    for n in range(len(line.code)):
        c = line.code[n]
        i = at[c]
        at[c] += 1
        order[i] = n
        packed[i, 0], packed[i, 1] = line.time[n], line.row[n]
        packed[i, 2] = 2 * np.int64(line.source[n]) + fits[n]
        for t in range(len(values)):
            packed[i, 3 + t] = values[t, n]


@njit
def earlier(line, place, fits, places):
    """For each place and position the last position of the place and the key before it; -1: there
    is none. place[source]. What does not fit is passed over."""
    code = line.code
    found = np.empty((places, len(code)), dtype=np.int32)
    last = np.full(places, -1, dtype=np.int32)
    for i in range(len(code)):
        if i > 0 and code[i] != code[i - 1]:
            last[:] = -1
        for q in range(places):
            found[q, i] = last[q]
        if fits[i]:
            last[place[line.source[i]]] = i
    return found


@njit
def assignments(line, walk, compared, since, most, spent):
    """The assignments that end at positions from `since` on, in order of the end: found[place, n],
    the position in each place, -1 in a place that is not filled. And the position before which they
    are complete: there are about most[0] of them. And 0; or how many steps an end took, each a
    position looked at, if they are more than most[1], or with those of its key before it more than
    most[2]. Then its assignments are left out.

    `spent`: the key of each code; how many steps each key has taken, which is counted on.
    """
    size, depth = len(walk.before), len(walk.steps)
    scratch = (
        np.full(size, -1, dtype=np.int64),
        np.zeros(depth, dtype=np.int64),
        np.zeros(depth, dtype=np.int64),
        np.zeros((len(compared.signs), 3), dtype=np.int64),
    )
    found = np.empty((size, min(len(line.code) + 16, most[0]) + 1024), dtype=np.int64)
    i, n = since, 0
    while True:
        i, n, end, taken = _fill(line, walk, compared, i, n, most, spent, scratch, found)
        if end != FULL:
            return found[:, :n].copy(), i, taken
        wider = np.empty((size, 2 * found.shape[1]), dtype=np.int64)
        wider[:, :n] = found[:, :n]
        found = wider


@part
def _fill(line, walk, compared, i, n, most, spent, scratch, found):
    """Goes back from each end, one occurrence at a time: `at[q]` is the position in place q, or -1;
    `way[d]` the position of step d; `since[d]` the instant before which nothing is near enough."""
    at, way, since, against = scratch
    source, code, time = line.source, line.code, line.time
    place, ends, steps, bounds, limits, before = walk
    room, last = found.shape[1], len(steps) - 1
    while i < len(code) and n < most[0]:
        if not ends[i]:
            i += 1
            continue
        begun, taken, key = n, 0, spent[0][code[i]]
        left = min(most[1], most[2] - spent[1][key])
        at[place[source[i]]], since[0] = i, time[i] - limits[steps[0]]
        d, p = min(1, last), np.int64(-1)
        if d > 0:
            p = _nearest(before, bounds, at, steps[d], i)
        elif n == room:
            _clear(at)
            return i, begun, FULL, taken
        else:
            n = _put(at, found, n)
        while d > 0:
            low, only = since[d - 1], _only(bounds, at, steps[d])
            m = _filled(compared, at, only, against)
            while p >= 0 and time[p] >= low:
                taken += 1
                q = only
                if only < 0:
                    q = place[source[p]]
                    m = _filled(compared, at, q, against)
                if _true(compared, against, m, p):
                    if d < last:
                        break
                    if n == room:
                        _clear(at)
                        return i, begun, FULL, taken
                    at[q] = p
                    n = _put(at, found, n)
                    at[q] = -1
                if only >= 0:
                    p = np.int64(before[only, p])
                else:
                    p = _nearest(before, bounds, at, steps[d], p)
            if taken > left:
                _clear(at)
                return i, begun, TOO_MANY, taken
            if p >= 0 and time[p] >= low:
                at[place[source[p]]], way[d] = p, p
                want = steps[d]
                since[d] = low if want == steps[d - 1] else max(low, time[p] - limits[want])
                d += 1
                p = _nearest(before, bounds, at, steps[d], p)
                continue
            d -= 1
            if d > 0:
                at[place[source[way[d]]]] = -1
                p = _nearest(before, bounds, at, steps[d], way[d])
        at[place[source[i]]] = -1
        spent[1][key] += taken
        i += 1
    return i, n, DONE, 0


@inlined
def _put(at, found, n):
    for q in range(len(at)):
        found[q, n] = at[q]
    return n + 1


@inlined
def _only(bounds, at, s):
    """The place of stage s that is empty, if it is the only one; else -1."""
    found = -1
    for q in range(bounds[s], bounds[s + 1]):
        if at[q] < 0:
            found = q if found == -1 else -2
    return max(found, -1)


@inlined
def _nearest(before, bounds, at, s, p):
    """The last position before p in an empty place of stage s; -1: there is none."""
    found = np.int64(-1)
    for q in range(bounds[s], bounds[s + 1]):
        if at[q] < 0:
            found = max(found, np.int64(before[q, p]))
    return found


@part
def _filled(compared, at, q, against):
    """The comparisons of place q with places that are filled, as if q were on the left: their
    numbers, signs, and the other values. Returns how many there are."""
    m = 0
    for t in range(len(compared.signs)):
        left, right = compared.sides[t, 0], compared.sides[t, 1]
        signs = compared.signs[t]
        if q == left and at[right] >= 0:
            against[m, 0], against[m, 1] = t, signs
            against[m, 2] = compared.values[t, at[right]]
            m += 1
        elif q == right and at[left] >= 0:
            turned = (signs & EQUAL) | (MORE if signs & LESS else 0) | (LESS if signs & MORE else 0)
            against[m, 0], against[m, 1] = t, turned
            against[m, 2] = compared.values[t, at[left]]
            m += 1
    return m


@inlined
def _true(compared, against, m, p):
    """Whether a position passes these m comparisons."""
    found = True
    for r in range(m):
        value, other = compared.values[against[r, 0], p], against[r, 2]
        sign = LESS if value < other else (EQUAL if value == other else MORE)
        found &= (against[r, 1] & sign) != 0
    return found


@inlined
def _clear(at):
    for q in range(len(at)):
        at[q] = -1


@njit
def entries(line, found, rank, size):
    """The positions of each assignment in order of (time, rank, row, source): [n, entry].
    rank[row]."""
    out = np.empty((found.shape[1], size), dtype=np.int64)
    _sorted(line, found, rank, out)
    return out


@part
def _sorted(line, found, rank, out):
    for n in range(found.shape[1]):
        o = 0
        for q in range(found.shape[0]):
            new = found[q, n]
            if new < 0:
                continue
            e = o
            while e > 0 and _before(line, rank, new, out[n, e - 1]):
                out[n, e] = out[n, e - 1]
                e -= 1
            out[n, e] = new
            o += 1


@inlined
def _before(line, rank, p, q):
    if line.time[p] != line.time[q]:
        return line.time[p] < line.time[q]
    one = rank[line.row[p]], line.row[p], line.source[p]
    return one < (rank[line.row[q]], line.row[q], line.source[q])
