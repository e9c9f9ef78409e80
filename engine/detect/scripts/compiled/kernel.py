"""The pass over a bucket's events: looks moves up, and calls their functions."""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def, unreachable"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidegate.engine.core.columns.numba_cache import inlined, njit, part
from tidegate.engine.core.values import FOREVER, Int64, UInt64
from tidegate.engine.detect.scripts.compiled.causes import Causes, mixed
from tidegate.engine.detect.scripts.compiled.intrinsics import fetch_ahead, transition

Int32 = npt.NDArray[np.int32]

AHEAD = 16
"""So many events before its own a row of an instance is fetched: among many keys it lies anywhere
in memory."""
TURNED = 64
"""So many rows of instances are turned to columns at a time."""
EVERY = -1
"""The key of an event of all instances."""
NO_EVENT, PYTHONS = -1, -2
"""Symbols: an arrival without a name; one that the interpreter takes."""
UNKNOWN, UNEXPECTED, INTERPRETED = -1, -2, -3
"""Entries of the table that are no moves."""
UNEXPECTED_FIRST = -2
"""The output of an `$error` for symbol n that is not expected: this less n."""
FAILED, FULL = -1, -2
"""What a function returns that has changed nothing: Python shall make the transition; no room."""
STATE_AFTER, PREVIOUS, CAUSE, DUE, HEAD = range(5)
"""The first words of an instance; how many they are."""
KEPT = -FOREVER
"""The timer of a marker that stays as it is."""
DONE, GROW, MISS, HARD = range(4)
"""Why the pass has stopped: at the end; a buffer is full; a move is unknown; the interpreter shall
take the event."""
EVENT, KEY, RECORDS, STATE, SYMBOL, MADE, LEFT, PLACES = range(8)
"""Where the pass stands, in `at`; a state and a symbol whose move is unknown; how many causes were
made, and how many timers more may fire."""
NAMED, ALL_PHASES = 1, 3
"""Phases of an instant, as in `instances`: that of named events; what is behind all of them."""


class Automaton(NamedTuple):
    """An automaton as arrays. `table[state, symbol]` is the number of a move. A move leads `to` a
    state and calls the function at `address` (0: none). Move 0 is the start."""

    table: Int32
    to: Int32
    address: Int64


class Events(NamedTuple):
    """Events in order: time[n], symbol[n], key[n] (`EVERY`: all instances). place[n] is the row of
    its values in the columns. The context has the addresses of these columns."""

    time: Int64
    symbol: Int32
    key: Int32
    place: Int64


class Instances(NamedTuple):
    """A row of words for each key. Integers and doubles share its memory, so one fetch brings a row
    that is not in the processor's cache. The words of a row are:

        state + 1 (0: there is no instance)
        instant of its previous event
        cause of its previous event: the number i of an event; -2 - i for a start by event i; -1 for
        a cause that is kept elsewhere
        instant of its first timer
        its variables

    timers[key, timed marker] are the instants of all its timers."""

    integers: Int64
    doubles: npt.NDArray[np.float64]
    timers: Int64


class Found(NamedTuple):
    """Emissions by the column: cause as in `Instances`; key; output, below 0 for an `$error`: -1
    if it is the interpreter's; number in the transition; the words of its value."""

    cause: Int64
    key: Int32
    output: Int32
    number: Int32
    words: Int64


class Timed(NamedTuple):
    """What firing takes: the number of named symbols, behind which those of the timers come; the
    phase of each timer in an instant; the causes of arrivals; ids and depths of those that are kept
    by key; those of timed events that have emitted, as they are made."""

    names: int
    phase: Int64
    arrived: Causes
    ids: UInt64
    depth: Int32
    made: Causes


class Scratch(NamedTuple):
    """Scratch of the pass: the timers of the state that is reached; the words of arrays that a
    transition has overwritten, and what they were; clocks[c], the last answer for clock c: the
    instant from which on it was asked, and its next instant then."""

    timers: Int64
    where: Int64
    was: Int64
    clocks: Int64


@njit
def turn(rows, code, words):
    """Writes the words of some rows to columns: words[word, n] is that of row code[n]. Some rows at
    a time are turned, as they are in the processor's cache then.

    >>> words = np.empty((2, 2), dtype=np.int64)
    >>> turn(np.array([[1, 2], [3, 4], [5, 6]]), np.array([0, 2]), words)
    >>> words
    array([[1, 5],
           [2, 6]])
    """
    width, count = words.shape
    for first in range(0, count, TURNED):
        last = min(first + TURNED, count)
        for word in range(width):
            for n in range(first, last):
                words[word, n] = rows[code[n], word]


@njit
def each_row(address, context, time, done):
    """Calls a function for the event at each place. done[n] says whether the call has emitted; it
    emits at most once. Returns how many have."""
    row, records = np.zeros((1, 1), np.int64), np.int64(0)
    for n in range(len(time)):
        after: int = transition(  # type: ignore[call-arg]
            address, row, context, np.int64(0), time[n], np.int64(n), np.int64(n), records
        )
        done[n] = after >= 0
        if done[n]:
            records = after
    return records


@njit
def run(automaton, events, instances, found, scratch, timed, context, at, grouped, expires):
    """Goes on from `at`, and says why it has stopped. expires: microseconds, -1 = never."""
    return _run(automaton, events, instances, found, scratch, timed, context, at, grouped, expires)


@njit
def fire_all(automaton, instances, scratch, timed, context, at, until, expires):
    """Fires what is due up to an instant, from the key `at` on. Says why it has stopped."""
    rows = instances.integers
    while at[KEY] < len(rows):
        k = at[KEY]
        if rows[k, STATE_AFTER] and rows[k, DUE] <= until:
            why = _fire(
                automaton, instances, scratch, timed, context, at, k, until, ALL_PHASES, expires
            )
            if why != DONE:
                return why
        at[KEY] += 1
    return DONE


@part
def _run(automaton, events, instances, found, scratch, timed, context, at, grouped, expires):
    rows = instances.integers
    n_timers = instances.timers.shape[1]
    keys = len(instances.integers)
    records = at[RECORDS]
    i, resumed = at[EVENT], at[KEY]
    while i < len(events.time):
        if grouped and i + AHEAD < len(events.time):
            later = np.int64(events.key[np.uint64(i + AHEAD)])
            fetch_ahead(rows, later)  # type: ignore[call-arg]
        event = np.uint64(i)
        symbol, now = events.symbol[event], events.time[event]
        k, last = np.int64(events.key[event]), np.int64(events.key[event])
        every = k == EVERY
        if every:
            k, last = resumed, np.int64(keys - 1)
        while k <= last:
            state = rows[np.uint64(k), STATE_AFTER] - 1
            if state < 0:
                if every or not grouped or symbol == NO_EVENT:
                    k += 1
                    continue
                if symbol < 0:
                    return _stop(at, HARD, i, k, records)
                move, cause, starting = np.int64(0), -2 - i, True
            else:
                if symbol == PYTHONS:
                    return _stop(at, HARD, i, k, records)
                if rows[np.uint64(k), DUE] <= now:
                    at[RECORDS] = records
                    why = _fire(
                        automaton, instances, scratch, timed, context, at, k, now, NAMED, expires
                    )
                    records = at[RECORDS]
                    if why != DONE:
                        return _stop(at, why, i, k, records)
                    state = rows[np.uint64(k), STATE_AFTER] - 1
                if expires >= 0 and now > rows[np.uint64(k), PREVIOUS] + expires:
                    if every:
                        k += 1
                        continue
                    return _stop(at, HARD, i, k, records)
                if symbol == NO_EVENT:
                    k += 1
                    continue
                move, cause, starting = (
                    np.int64(automaton.table[np.uint64(state), np.uint64(symbol)]),
                    i,
                    False,
                )
                if move < 0:
                    if move == UNKNOWN:
                        at[STATE], at[SYMBOL] = state, symbol
                        return _stop(at, MISS, i, k, records)
                    if move == INTERPRETED:
                        return _stop(at, HARD, i, k, records)
                    if records == len(found.cause):
                        return _stop(at, GROW, i, k, records)
                    found.cause[records] = i
                    found.key[records] = k
                    found.output[records] = UNEXPECTED_FIRST - symbol
                    found.number[records] = 0
                    records += 1
                    k += 1
                    continue
            for t in range(n_timers):
                scratch.timers[t] = FOREVER
            address = automaton.address[np.uint64(move)]
            if address:
                after: int = transition(  # type: ignore[call-arg]
                    address, rows, context, k, now, events.place[event], cause, records
                )
                if after < 0:
                    return _stop(at, GROW if after == FULL else HARD, i, k, records)
                records = after
            _settle(automaton, instances, scratch, np.uint64(k), np.uint64(move), now, cause)
            if not starting:
                k += 1
        resumed = 0
        i += 1
    return _stop(at, DONE, i, 0, records)


@part
def _fire(automaton, instances, scratch, timed, context, at, k, until, phase, expires):
    """Fires the timers of an instance that are due before a phase of an instant, one by one. Those
    that are due together are Python's."""
    row, timers = instances.integers[np.uint64(k)], instances.timers[np.uint64(k)]
    while row[DUE] <= until:
        now, first, together = row[DUE], -1, False
        for t in range(len(timers)):
            if timers[t] == now:
                if first < 0 or timed.phase[t] < timed.phase[first]:
                    first, together = t, False
                elif timed.phase[t] == timed.phase[first]:
                    together = True
        if first < 0:
            return HARD  # it is Python's
        if now == until and timed.phase[first] >= phase:
            return DONE
        if expires >= 0 and now > row[PREVIOUS] + expires:
            return DONE
        symbol = timed.names + first
        if together or not at[LEFT] or symbol >= automaton.table.shape[1]:
            return HARD
        move = np.int64(automaton.table[row[STATE_AFTER] - 1, symbol])
        if move == UNKNOWN:
            at[STATE], at[SYMBOL] = row[STATE_AFTER] - 1, symbol
            return MISS
        if move == INTERPRETED:
            return HARD
        if move == UNEXPECTED:
            timers[first] = FOREVER
            row[DUE] = _first(timers)
            continue
        made = at[MADE]
        if made == len(timed.made.time):
            return GROW
        for t in range(len(timers)):
            scratch.timers[t] = FOREVER
        if automaton.address[move]:
            after: int = transition(  # type: ignore[call-arg]
                automaton.address[move], instances.integers, context, k, now, np.int64(0),
                len(timed.arrived.time) + made, at[RECORDS],
            )  # fmt: skip
            if after < 0:
                return GROW if after == FULL else HARD
            at[MADE] += after > at[RECORDS]
            at[RECORDS] = after
        _follow(timed, row, k, now, made)
        _settle(automaton, instances, scratch, np.uint64(k), np.uint64(move), now, -1)
        at[LEFT] -= 1
    return DONE


@part
def _follow(timed, row, k, now, made):
    """Keeps the cause that follows an instance's; made[made], too, in case it emits."""
    cause, arrived = row[CAUSE], timed.arrived
    high, low, depth = timed.ids[k, 0], timed.ids[k, 1], timed.depth[k]
    if cause >= 0:
        high, low, depth = arrived.ids[cause, 0], arrived.ids[cause, 1], arrived.depth[cause]
    elif cause < -1:
        high, low = mixed(np.uint64(0), np.uint64(0), arrived.time[-2 - cause])
        depth = np.int32(0)
    high, low = mixed(high, low, now)
    timed.ids[k, 0], timed.ids[k, 1], timed.depth[k] = high, low, depth
    timed.made.time[made], timed.made.depth[made] = now, depth
    timed.made.ids[made, 0], timed.made.ids[made, 1] = high, low


@inlined
def _first(timers):
    due = FOREVER
    for t in range(len(timers)):
        due = min(due, timers[t])
    return due


@part
def _settle(automaton, instances, scratch, k, move, now, cause):
    """An instance after a move."""
    row, timers = instances.integers[k], instances.timers[k]
    row[STATE_AFTER] = automaton.to[move] + 1
    row[PREVIOUS] = now
    row[CAUSE] = cause
    for t in range(len(timers)):
        if scratch.timers[t] != KEPT:
            timers[t] = scratch.timers[t]
    row[DUE] = _first(timers)


@inlined
def _stop(at, why, event, key, records):
    at[EVENT] = event
    at[KEY] = key
    at[RECORDS] = records
    return why
