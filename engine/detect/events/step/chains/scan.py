"""The compiled loop of a chain: one scan over the arrivals, in order of time, of all keys at once.

The state is a record of numbers for each key code, `NEVER` where there is nothing yet:

    at[stage]       for each stage but the last: the start of its latest match,
                    then the row of each of that match's occurrences
    at[guard]       when the last occurrence of what guards a stage was, and its row

Example: `(a ; b) - c` has the record [start of a, row of a | time of c, row of c]. An a writes the
first two numbers, a c the last two. A b reads both: there is a match if a is later than c.

Indices are unsigned: of each signed one numba asks whether it counts from the end.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def, call-arg"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.engine.core.columns.numba_cache import inlined, njit
from tidegate.engine.core.values import Int64, UInt64
from tidegate.engine.detect.events.kernels.columns import Bools, Int16, Int32
from tidegate.engine.detect.events.kernels.prefetch import prefetch

AHEAD = 16
"""How many arrivals ahead a scan prefetches state."""
CACHED = 1 << 17
"""A state of at most so many numbers stays in the processor's cache without prefetching."""


class Program(NamedTuple):
    """A chain as a scan reads it. Places are the stages, then the guards, then one for what is of
    no use: place[code] is that of an event type.

    last          the last stage
    at[place]     where in a record its state begins
    size[place]   the length of a record; 0 for what is of no use, which all writes to one place
    noted[place]  its occurrences go to the state at once: what guards, and a first stage that is
                  not guarded
    span[stage]   how long a match may be, microseconds
    shown[stage]  its matches are instances that somebody reads
    guards[bounds[stage]:bounds[stage + 1]]  where in a record the state of its guards begins
    """

    place: UInt64
    last: np.uint64
    at: UInt64
    size: Int64
    noted: Bools
    span: Int64
    shown: Bools
    bounds: UInt64
    guards: UInt64


class Found(NamedTuple):
    """The matches found that are shown, in order of end: match n ends with stage[n] and is made of
    the rows row[n, :stage[n] + 1]."""

    stage: Int16
    key: Int32
    start: Int64
    end: Int64
    row: Int64


@njit
def scan(arriving, program, state, ahead, found):
    """Scans the arrivals, updates `state`, and writes the matches to `found`. Returns how many were
    found. The state of arrivals is prefetched `ahead` of them. `arriving` are the columns of
    `Arrivals`, and how many are simultaneous at most."""
    stage, key, start, end, row = found
    code, time, keys, first, most = arriving
    place, last, at, size, noted, span, shown, bounds, guards = program
    zero, one = np.uint64(0), np.uint64(1)
    run = np.empty(most, dtype=np.int64)
    n, i, x, simultaneous = zero, 0, 0, 0
    t = np.int64(0)
    while i < len(time) or x < simultaneous:
        if x < simultaneous:
            r = run[x]
            x += 1
        else:
            r = i
            t = time[i]
            i += 1
            if i + ahead < len(time):
                prefetch(state, np.uint64(keys[i + ahead] * size[0]))
            if i < len(time) and time[i] == t:
                simultaneous = latest_stage_first(r, code, time, place, run)
                i = r + simultaneous
                r = run[0]
                x = 1
        p = place[np.uint32(code[r])]
        base = np.uint64(keys[r] * size[p])
        if noted[p]:
            d = base + at[p]
            state[d] = t
            state[d + one] = first + r
            continue
        b, s = base, t
        if p > zero:
            b = base + at[p - one]
            s = state[b]
            if s < t - span[p]:
                continue
        later = True
        for g in range(bounds[p], bounds[p + one]):
            later &= s > state[base + guards[g]]
        if not later:
            continue
        if p < last:
            d = base + at[p]
            state[d] = s
            for y in range(p):
                state[d + one + y] = state[b + one + y]
            state[d + one + p] = first + r
        if shown[p]:
            stage[n] = p
            key[n] = keys[r]
            start[n] = s
            end[n] = t
            for y in range(p):
                row[n, y] = state[b + one + y]
            row[n, p] = first + r
            n += one
    return n


@njit
def scan_pairs(arriving, program, state, ahead, found):
    """`scan` for two stages without guards, `a ; b within s`. It takes a third of the time, as no
    jump depends on an event type or on what a key's state is.

    >>> arriving = np.array([0, 1, 1]), np.array([5, 7, 9]), np.array([0, 0, 0]), 20, 1
    >>> place = np.array([0, 1, 2], dtype=np.uint64)
    >>> program = Program(place, 1, *[None] * 3, np.array([ENDLESS, 3]), *[None] * 3)
    >>> found = Found(*(np.zeros(3, dtype=np.int64) for _ in range(4)), np.zeros((3, 2), np.int64))
    >>> int(scan_pairs(arriving, program, np.full(4, NEVER), 3, found)), found.row[0]
    (1, array([20, 21]))
    """
    code, time, keys = arriving[:3]
    n, i = np.uint64(0), 0
    while i < len(time):
        if i + ahead < len(time):
            prefetch(state, np.uint64(keys[i + ahead] * 2))
        if i + 1 < len(time) and time[i + 1] == time[i]:
            until = i + 1
            while until < len(time) and time[until] == time[i]:
                until += 1
            for stage in range(1, -1, -1):  # no b follows a simultaneous a
                for r in range(i, until):
                    if program.place[np.uint32(code[r])] == stage:
                        n = _pair(r, arriving, program, state, found, n)
            i = until
        else:
            n = _pair(i, arriving, program, state, found, n)
            i += 1
    return n


@inlined
def _pair(r, arriving, program, state, found, n):
    """Notes arrival r if it is an a, and writes the match that it ends to found[n] if it is a b.
    Returns how many matches there are. Whatever it is, something is written, to be written over."""
    code, time, keys, first, _ = arriving
    p, t, base = program.place[np.uint32(code[r])], time[r], np.uint64(keys[r] * 2)
    s = state[base]
    found.key[n] = keys[r]
    found.start[n] = s
    found.end[n] = t
    found.row[n, 0] = state[base + np.uint64(1)]
    found.row[n, 1] = first + r
    d = base if p == 0 else np.uint64(len(state) - 2)
    state[d] = t
    state[d + np.uint64(1)] = first + r
    return n + np.uint64((p == 1) & (s >= t - program.span[1]))


@njit
def latest_stage_first(first, code, time, place, run):
    """Writes the arrivals simultaneous with `first` to `run`. Guards come before stages, and a
    later stage before an earlier one, so that no arrival follows a simultaneous one. Returns how
    many there are.

    Codes 0 and 1 are the stages 0 and 1:

    >>> run = np.empty(2, dtype=np.int64)
    >>> code, time = np.array([0, 1]), np.array([5, 5])
    >>> latest_stage_first(0, code, time, np.array([0, 1], dtype=np.uint64), run), run
    (2, array([1, 0]))
    """
    end = first
    highest = np.uint64(0)
    while end < len(time) and time[end] == time[first]:
        highest = max(highest, place[np.uint32(code[end])])
        end += 1
    n = 0
    for turn in range(highest + np.uint64(1)):
        for i in range(first, end):
            if place[np.uint32(code[i])] == highest - turn:
                run[n] = i
                n += 1
    return n


@njit
def by_last_row(matches, first, arrivals, oldest):
    """The keys whose latest match ends with an arrival, in order of that arrival, and starts at
    `oldest` or later. The arrivals have rows from `first` on. matches[key] is the start (`NEVER` =
    none) and the rows of the key's latest match.

    Key 1's match ends with row 6, key 2's with row 5, key 0's was carried:

    >>> matches = np.array([[1, 0], [10, 6], [20, 5]])
    >>> by_last_row(matches, 5, 3, 10)
    array([2, 1], dtype=int32)
    """
    last = matches.shape[1] - 1
    key_at = np.full(arrivals + 1, -1, dtype=np.int32)  # the last place is of no arrival
    for key in range(len(matches)):
        at = matches[key, last] - first
        arrived = (matches[key, 0] >= oldest) & (at >= 0)
        key_at[at if arrived else arrivals] = key  # no jump: it could not be foreseen
    out = np.empty(arrivals, dtype=np.int32)
    n = 0
    for key in key_at[:arrivals]:
        out[n] = key
        n += key >= 0
    return out[:n]
