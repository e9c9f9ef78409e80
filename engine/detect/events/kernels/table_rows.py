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
    """Whether no value is smaller than the one before.

    >>> bool(ascending(np.array([1, 2, 2])))
    True
    """
    falls = 0
    for i in range(1, len(values)):
        falls += values[i] < values[i - 1]
    return falls == 0


@njit
def counts(code, codes):
    """How often each code occurs.

    >>> counts(np.array([0, 2, 0]), 3)
    array([2, 0, 1])
    """
    found = np.zeros(codes, dtype=np.int64)
    for c in code:
        found[c] += 1
    return found


@njit
def first_places(code, codes):
    """The first place of each code, -1 if there is none. It looks no further than it must.

    >>> first_places(np.array([2, 0, 2]), 3)
    array([ 1, -1,  0])
    """
    found = np.full(codes, -1, dtype=np.int64)
    left = codes
    for i in range(len(code)):
        if found[code[i]] < 0:
            found[code[i]] = i
            left -= 1
            if not left:
                break
    return found


@njit
def longest_run(values):
    """The length of the longest run of equal values.

    >>> longest_run(np.array([4, 7, 7, 4]))
    2
    """
    longest, run = min(len(values), 1), 1
    for i in range(1, len(values)):
        run = run + 1 if values[i] == values[i - 1] else 1
        longest = max(longest, run)
    return longest


@njit
def among_simultaneous(time, index):
    """For each place its number among those of the same time. Times do not fall, places ascend.

    >>> among_simultaneous(np.array([1, 4, 4, 4]), np.array([0, 2, 3]))
    array([0, 1, 2])
    """
    out = np.empty(len(index), dtype=np.int64)
    first, last = 0, -1
    for i in range(len(index)):
        at = index[i]
        if last < 0 or time[at] != time[last]:
            first = at
            while first > last + 1 and time[first - 1] == time[at]:
                first -= 1
        out[i] = at - first
        last = at
    return out


@njit
def split(code, codes):
    """The places of each code, one code after the other; and where each code begins.

    >>> split(np.array([1, 0, 1, 1]), 2)
    (array([1, 0, 2, 3]), array([0, 1, 4]))
    """
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
    """The number of each place among the places of its code: undoes `split`.

    >>> inverse(np.array([1, 0, 2, 3]), np.array([0, 1, 4]))
    array([0, 0, 1, 2])
    """
    out = np.empty(len(place), dtype=np.int64)
    for c in range(len(bounds) - 1):
        for i in range(bounds[c], bounds[c + 1]):
            out[place[i]] = i - bounds[c]
    return out


@njit
def places(time, number, of_time, of_number):
    """The place of each pair of time and number in a table in order of both, which has it. Where it
    is that after the last one it is not searched for.

    >>> places(np.array([1, 4, 4]), np.array([0, 0, 7]), np.array([4, 1]), np.array([7, 0]))
    array([2, 0])
    """
    out = np.empty(len(of_time), dtype=np.int64)
    low = 0
    for i in range(len(of_time)):
        t, n = of_time[i], of_number[i]
        if low == len(time) or time[low] != t or number[low] != n:
            low, high = 0, len(time)
            while low < high:
                middle = (low + high) // 2
                before = time[middle] < t or (time[middle] == t and number[middle] < n)
                low, high = (middle + 1, high) if before else (low, middle)
        out[i] = low
        low += 1
    return out


@njit
def merged(left_time, left_code, right_time, right_code):
    """Merges two runs, each in order of time: time, code. At one instant the left run comes first.
    It goes on from both ends in turn, as neither waits for the other: that takes half the time.

    >>> zero, one = np.zeros(2, dtype=np.int32), np.ones(2, dtype=np.int32)
    >>> merged(np.array([1, 4]), zero, np.array([2, 4]), one)
    (array([1, 2, 4, 4]), array([0, 1, 0, 1], dtype=int32))
    """
    n = len(left_time) + len(right_time)
    out_time = np.empty(n, dtype=np.int64)
    out_code = np.empty(n, dtype=np.int32)
    i, j, o = 0, 0, 0
    i_end, j_end, o_end = len(left_time), len(right_time), n  # behind what is not merged yet
    while i < i_end and j < j_end:
        left = left_time[i] <= right_time[j]  # no jump: it could not be foreseen
        out_time[o] = left_time[i] if left else right_time[j]
        out_code[o] = left_code[i] if left else right_code[j]
        i += left
        j += not left
        o += 1
        if i < i_end and j < j_end:
            right = right_time[j_end - 1] >= left_time[i_end - 1]
            o_end -= 1
            out_time[o_end] = right_time[j_end - 1] if right else left_time[i_end - 1]
            out_code[o_end] = right_code[j_end - 1] if right else left_code[i_end - 1]
            j_end -= right
            i_end -= not right
    if i < i_end:
        out_time[o:o_end] = left_time[i:i_end]
        out_code[o:o_end] = left_code[i:i_end]
    else:
        out_time[o:o_end] = right_time[j:j_end]
        out_code[o:o_end] = right_code[j:j_end]
    return out_time, out_code


@njit
def listed(offsets, row, role, shown):
    """The entries of instances in the roles that are shown: offsets, row, role. Each occurrence of
    an instance is listed once. Equal rows of an instance stand together.

    Row 7 fills the roles 0 and 1 of the first instance; role 2 is not shown:

    >>> shown = np.array([True, True, False])
    >>> offsets, row, role = listed(
    ...     np.array([0, 3, 4]), np.array([7, 7, 8, 9]), np.array([0, 1, 2, 0]), shown
    ... )
    >>> offsets, row
    (array([0, 1, 2]), array([7, 9]))
    """
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
    """The pieces of a step's numbering of occurrences. Piece `timeline` holds the arrivals of all
    event types. Any other piece holds occurrences of one event type.

    base[p]    the first row of piece p
    place[p]   the number of its event type
    first[p]   where it begins in the batch of its event type
    """

    base: Int64
    place: Int64
    first: Int64
    timeline: int


@njit
def located(row, pieces, code, index, place_of_code, carried):
    """For each row the number of its event type, and its place in the batch of that type.

    Arrival i is of the type place_of_code[code[i]]. Its place is carried[code[i]] + index[i], as
    carried occurrences come first. Without an `index` all arrivals are one batch: its place is i.

    Rows 0 and 1 are carried occurrences of type 0. The arrivals have rows from 2 on:

    >>> pieces = Pieces(
    ...     base=np.array([0, 2]), place=np.array([0, -1]), first=np.array([0, 0]), timeline=1
    ... )
    >>> code, index, carried = np.array([0, 1, 0]), np.array([0, 0, 1]), np.array([2, 0])
    >>> located(np.array([1, 2, 3, 4]), pieces, code, index, np.array([0, 1]), carried)
    (array([0, 0, 1, 0], dtype=int16), array([1, 2, 0, 3]))
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
    """Writes values[at[i]] to out[i] where code[i] is `number`.

    >>> out = np.zeros(3, dtype=np.int64)
    >>> place(np.array([50, 60]), np.array([1, 0, 0]), np.array([4, 4, 5]), 4, out)
    >>> out
    array([60, 50,  0])
    """
    for i in range(len(at)):
        if code[i] == number:
            out[i] = values[at[i]]
