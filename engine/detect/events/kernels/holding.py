"""When what holds fires, and when it is resolved: `holds`.

Each key is walked by itself, from one change of its state to the next:

    state     what it waits for                            then
    idle      the next begun, at t0                        pending
    pending   the first ended after t0, by t0 + length     idle at that ended
              none by then                                 fires at t0 + length with the begun since
    fired     the next ended, at u                         clearing
    clearing  keep above 0, a begun in [u, u + keep]       fired
              none by u + keep                             resolved at u + keep; idle

At one instant an ended comes before a begun. Example, length 10 and keep 5, up to 45:

    begun at 1, 4, 22, 40, ended at 20, 30    pending at 1; fires at 11 with 1 and 4; the ended at
                                              20 is void by the begun at 22; that at 30 resolves it
                                              at 35; pending again at 40

>>> time = np.array([1, 4, 22, 40, 20, 30])
>>> turns, _ = turns_of(np.zeros(6, np.int32), time, 4, np.full(1, NEVER), (10, 5), 45)
>>> turns.start, turns.end, turns.done
(array([ 1, 30, 40]), array([11, 35, 50]), array([ True,  True, False]))
>>> [turns.place[turns.offsets[n] : turns.offsets[n + 1]].tolist() for n in range(3)]
[[0, 1], [5], [3]]
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def, call-arg"

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.engine.core.columns.numba_cache import inlined, njit, part
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.kernels.columns import LAST, NEVER, Bools, Int32
from tidegate.engine.detect.events.kernels.table_rows import split


class Turns(NamedTuple):
    """n turns, key by key.

    key[n]             its key code
    start[n], end[n]   t0 and t0 + length of what fires; u and u + keep of what is resolved
    done[n]            whether it has come to that: else it is pending or clearing
    offsets[n], place  its occurrences, as places of the rows: the begun since t0, or the ended at u
    """

    key: Int32
    start: Int64
    end: Int64
    done: Bools
    offsets: Int64
    place: Int64


class _Line(NamedTuple):
    """The occurrences key by key. Those of key k that begin are bounds[k]:bounds[k + 1], those that
    end are ends[k]:ends[k + 1]; place[i] is their place among the rows."""

    place: Int64
    time: Int64
    bounds: Int64
    ends: Int64


@njit
def turns_of(key, time, begun, fired, lengths, watermark):
    """The turns up to the watermark; and for each key code when it has fired, if that is not
    resolved by then, else `NEVER`.

    key[i], time[i] are of row i. The first `begun` rows begin a turn, the others end one. Each of
    the two parts is in order of time, key by key. A row of key code 0 ends the turns of all keys.
    fired[k]: the second result, up to the watermark before. `lengths`: length and keep,
    microseconds.
    """
    line = _line(key, time, begun, len(fired))
    fired = fired.copy()
    room = 3 * begun + 2 * (fired != NEVER).sum()
    spans = np.empty((room, 4), dtype=np.int64)
    start, end = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
    whose, done = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.bool_)
    out = (whose, start, end, done, spans)
    n = 0
    for k in range(len(fired)):
        if line.bounds[k] < line.bounds[k + 1] or fired[k] != NEVER:
            n = _walk(k, line, fired, lengths, watermark, out, n)
    offsets, place = _occurrences(line.place, spans[:n])
    return Turns(whose[:n], start[:n], end[:n], done[:n], offsets, place), fired


@njit
def _line(key, time, begun, codes):
    first, bounds = split(key[:begun], codes)
    second, ends = split(key[begun:], codes)
    place = np.concatenate((first, second + begun))
    return _Line(place, time[place], bounds, ends + begun)


@njit
def _occurrences(of, spans):
    """The occurrences of turns. Each has two ranges of the line."""
    offsets = np.zeros(len(spans) + 1, dtype=np.int64)
    for n in range(len(spans)):
        offsets[n + 1] = offsets[n] + spans[n, 1] - spans[n, 0] + spans[n, 3] - spans[n, 2]
    place = np.empty(offsets[-1], dtype=np.int64)
    o = 0
    for n in range(len(spans)):
        for half in range(0, 4, 2):
            for i in range(spans[n, half], spans[n, half + 1]):
                place[o] = of[i]
                o += 1
    return offsets, place


@part
def _walk(k, line, fired, lengths, watermark, out, n):
    """Walks one key. Returns the number of turns so far."""
    _, time, bounds, ends = line
    length, keep = lengths
    i, last = bounds[k], bounds[k + 1]
    j, own = ends[k], ends[k + 1]
    s, shared = (ends[0], ends[1]) if k > 0 else (own, own)
    since = fired[k]
    while True:
        if fired[k] == NEVER:
            if i == last:
                return n
            start, due = time[i], time[i] + length
            j, s = _past(time, j, own, start), _after(time, s, shared, start)
            ended = _first(time, j, own, s, shared)
            if ended <= due:
                i = _past(time, i, last, ended - 1)
            elif due > watermark:
                return _put(out, n, (k, start, due, False), (i, last, 0, 0))
            else:
                until = _past(time, i, last, due)
                n = _put(out, n, (k, start, due, True), (i, until, 0, 0))
                i, fired[k], since = until, due, due
            continue
        j, s = _past(time, j, own, since), _after(time, s, shared, since)
        ended = _first(time, j, own, s, shared)
        if ended == LAST:
            return n
        again, due = _past(time, i, last, ended - 1), ended + keep
        if keep > 0 and again < last and time[again] <= due:
            i, since = again, time[again]
            continue
        span = (j, _past(time, j, own, ended), s, _after(time, s, shared, ended))
        if due > watermark:
            return _put(out, n, (k, ended, due, False), span)
        n = _put(out, n, (k, ended, due, True), span)
        i, fired[k] = _past(time, i, last, due - 1), NEVER


@inlined
def _past(time, i, until, instant):
    """The first place from i on that is later than an instant."""
    while i < until and time[i] <= instant:
        i += 1
    return i


@inlined
def _after(time, i, until, instant):
    """The same by halving: what all keys share may be much, and each key looks for its own."""
    while i < until:
        middle = (i + until) // 2
        if time[middle] <= instant:
            i = middle + 1
        else:
            until = middle
    return i


@inlined
def _first(time, j, own, s, shared):
    """The earlier of the two next ones."""
    one = time[j] if j < own else LAST
    return min(one, time[s]) if s < shared else one


@inlined
def _put(out, n, turn, span):
    key, start, end, done, spans = out
    key[n], start[n], end[n], done[n] = turn
    spans[n] = span
    return n + 1
