"""The compiled loops between a table of occurrences, events and detections."""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.engine.core.columns.numba_cache import njit
from tidegate.engine.core.values import Int64


@njit
def ascending(values):
    """Is each value no smaller than the one before?"""
    falls = 0
    for i in range(1, len(values)):
        falls += values[i] < values[i - 1]
    return falls == 0


@njit
def counts(code, codes):
    """How often each code occurs."""
    found = np.zeros(codes, dtype=np.int64)
    for c in code:
        found[c] += 1
    return found


@njit
def longest_run(values):
    """The most equal values that stand together."""
    longest, run = min(len(values), 1), 1
    for i in range(1, len(values)):
        run = run + 1 if values[i] == values[i - 1] else 1
        longest = max(longest, run)
    return longest


@njit
def split(code, codes):
    """The places of each code, one code after the other; and where each code begins."""
    bounds = np.zeros(codes + 1, dtype=np.int64)
    for c in code:
        bounds[c + 1] += 1
    bounds = np.cumsum(bounds)
    at = bounds[:-1].copy()
    out = np.empty(len(code), dtype=np.int64)
    for i in range(len(code)):
        out[at[code[i]]] = i
        at[code[i]] += 1
    return out, bounds


@njit
def inverse(place, bounds):
    """For each place the number that it has among those of its code (see `split`)."""
    out = np.empty(len(place), dtype=np.int64)
    for c in range(len(bounds) - 1):
        for i in range(bounds[c], bounds[c + 1]):
            out[place[i]] = i - bounds[c]
    return out


@njit
def merged(left_time, left_code, right_time, right_code):
    """Two runs in order of time as one: time, code. Of one instant the left ones come first."""
    n = len(left_time) + len(right_time)
    out_time = np.empty(n, dtype=np.int64)
    out_code = np.empty(n, dtype=np.int32)
    i, j, o = 0, 0, 0
    while i < len(left_time) and j < len(right_time):
        left = left_time[i] <= right_time[j]  # no jump: it could not be foreseen
        out_time[o] = left_time[i] if left else right_time[j]
        out_code[o] = left_code[i] if left else right_code[j]
        i += left
        j += not left
        o += 1
    rest = n - o
    if i < len(left_time):
        out_time[o:] = left_time[len(left_time) - rest :]
        out_code[o:] = left_code[len(left_code) - rest :]
    else:
        out_time[o:] = right_time[len(right_time) - rest :]
        out_code[o:] = right_code[len(right_code) - rest :]
    return out_time, out_code


@njit
def listed(offsets, row, role, shown):
    """The entries of instances in roles that are shown, each occurrence once: offsets, row, role.
    Equal rows of an instance stand together."""
    out = np.zeros(len(offsets), dtype=np.int64)
    out_row = np.empty(len(row), dtype=np.int64)
    out_role = np.empty(len(row), dtype=np.int16)
    n = 0
    for i in range(len(offsets) - 1):
        for e in range(offsets[i], offsets[i + 1]):
            if shown[role[e]] and (n == out[i] or row[e] != out_row[n - 1]):
                out_row[n] = row[e]
                out_role[n] = role[e]
                n += 1
        out[i + 1] = n
    return out, out_row[:n], out_role[:n]


class Pieces(NamedTuple):
    """A step's numbering of occurrences, piece by piece: piece p begins at row base[p], is of the
    event type place[p], and continues its batch from first[p] on. Piece `timeline` is the arrivals,
    of all event types."""

    base: Int64
    place: Int64
    first: Int64
    timeline: int


@njit
def located(row, pieces, code, index, place_of_code, carried):
    """For each row the number of its event type and its place in that one's batch.

    Arrival i is of the type place_of_code[code[i]]; its place is index[i] after what is carried of
    that type, carried[code[i]]. Without an `index` all arrivals are one batch.
    """
    out_place = np.empty(len(row), dtype=np.int16)
    out_index = np.empty(len(row), dtype=np.int64)
    for i in range(len(row)):
        p = len(pieces.base) - 1
        while pieces.base[p] > row[i]:
            p -= 1
        at = row[i] - pieces.base[p]
        if p == pieces.timeline:
            out_place[i] = place_of_code[code[at]]
            out_index[i] = carried[code[at]] + index[at] if len(index) else at
        else:
            out_place[i] = pieces.place[p]
            out_index[i] = pieces.first[p] + at
    return out_place, out_index


@njit
def place(values, at, code, number, out):
    """Write values[at[i]] to out[i] where code[i] is `number`."""
    for i in range(len(at)):
        if code[i] == number:
            out[i] = values[at[i]]
