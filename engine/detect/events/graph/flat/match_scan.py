"""The scan in `continuous`. It carries partial matches, one for each initiator.

The state, for `a ; b ; c` (stages 0, 1, 2). A list of matches waits for each key code and stage:

    head[code * stages + s]    the newest match that waits for stage s (0: none)
    begun[match]               the instant of its initiator
    link[match, NEXT]          the next older match of its list (0: none)
    link[match, SIZE]          how many occurrences it holds
    held[match]                the positions of these
    link[0, NEXT]              the first free match
    link[0, SIZE]              how many matches were ever used

    a@1    stage 1: (a@1)
    a@2    stage 1: (a@2), (a@1)
    b@3    stage 2: (a@2 b@3), (a@1 b@3)
    a@4    stage 1: (a@4)    stage 2: (a@2 b@3), (a@1 b@3)
    c@5    stage 1: (a@4)    detects a@2 b@3 c@5 and a@1 b@3 c@5
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidegate.engine.core.columns.numba_cache import inlined, njit, part
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.flat.line import COUNT, FROM, LIMIT, TO

NEXT, SIZE = 0, 1


class Matches(NamedTuple):
    """The state (see the table above). full[s] is how many occurrences the stages up to s take."""

    head: npt.NDArray[np.int32]
    begun: Int64
    link: npt.NDArray[np.int32]
    held: npt.NDArray[np.int32]
    full: Int64


class Found(NamedTuple):
    """Matches that were read: code[n], position[n], and size[n], how many positions are filled."""

    code: npt.NDArray[np.int32]
    position: Int64
    size: Int64


@njit
def continuous(layout, line, offsets, watermark):
    """Matches each initiator with the first occurrence that it lacks, stage by stage. Returns code
    and positions of the complete matches; code, positions and size of those that may still become
    complete after the watermark. Carried match n has the positions offsets[n]:offsets[n + 1].

    This is the initiator's instance with the oldest times, as no stage is complete earlier with a
    later occurrence. If a stage ends too late with the first occurrences, it does with all others,
    and the match is dropped.

    `a ; b` on a@1 a@2 b@3 a@4:

    >>> layout = Layout(
    ...     np.array([0, 1]), np.array([0, 1]), np.array([0, 1]),
    ...     np.array([[0, 1, 1, 0, ENDLESS], [1, 2, 1, 0, ENDLESS]]),
    ... )
    >>> line = Line(
    ...     source=np.array([0, 0, 1, 0]), code=np.zeros(4, dtype=np.int32),
    ...     time=np.array([1, 2, 3, 4]), row=np.arange(4), carried=0, codes=1, rows=0,
    ... )
    >>> _, found, _, waiting, _ = continuous(layout, line, np.array([0]), 4)
    >>> found.tolist(), waiting[:, 0].tolist()
    ([[1, 2], [0, 2]], [3])
    """
    table = layout.table
    full = np.cumsum(table[:, COUNT])
    room = len(offsets) - 1
    for i in range(line.carried, len(line.code)):
        room += layout.stage[layout.place[line.source[i]]] == 0
    matches = Matches(
        np.zeros(line.codes * len(table), dtype=np.int32),
        np.empty(room + 1, dtype=np.int64),
        np.empty((room + 1, 2), dtype=np.int32),
        np.empty((room + 1, full[-1]), dtype=np.int32),
        full,
    )
    matches.link[0] = 0
    _resume(matches, table, line, offsets)
    found = Found(
        np.empty(room, dtype=np.int32), np.empty((room, full[-1]), dtype=np.int64), full[:0]
    )
    n = _continuous(layout, line, matches, found)
    waiting = _count_waiting(matches, table, watermark)
    kept = Found(
        np.empty(waiting, dtype=np.int32),
        np.full((waiting, full[-1]), -1, dtype=np.int64),
        np.empty(waiting, dtype=np.int64),
    )
    _read_waiting(matches, table, watermark, kept)
    return found.code[:n], found.position[:n], kept.code, kept.position, kept.size


@part
def _resume(matches, table, line, offsets):
    for n in range(len(offsets) - 1):
        first, until = offsets[n], offsets[n + 1]
        s = 0
        while matches.full[s] <= until - first:
            s += 1
        new = _begin(matches, np.int64(line.code[first]) * len(table) + s, line.time[first])
        for i in range(first, until):
            _hold(matches, new, i)


@inlined
def _begin(matches, at, instant):
    """Starts a match and puts it in front of a list."""
    new = _new(matches, instant)
    matches.link[new, NEXT] = matches.head[at]
    matches.head[at] = new
    return new


@inlined
def _new(matches, instant):
    link = matches.link
    new = np.int64(link[0, NEXT])
    if new > 0:
        link[0, NEXT] = link[new, NEXT]
    else:
        new = np.int64(link[0, SIZE]) + 1
        link[0, SIZE] = new
    link[new] = 0
    matches.begun[new] = instant
    return new


@inlined
def _free(matches, match):
    """Frees a match. Returns the next older match of its list."""
    older = np.int64(matches.link[match, NEXT])
    matches.link[match, NEXT] = matches.link[0, NEXT]
    matches.link[0, NEXT] = match
    return older


@part
def _continuous(layout, line, matches, found):
    place, stage, _, table = layout
    last = len(table) - 1
    n = 0
    for i in range(line.carried, len(line.code)):
        s = stage[place[line.source[i]]]
        at = np.int64(line.code[i]) * len(table) + s
        if s == 0 and matches.full[0] > 1:
            newest, oldest = _extend(matches, layout, line, at, s, i)
            _hold(matches, _begin(matches, at, line.time[i]), i)
        elif s == 0:
            newest = oldest = _new(matches, line.time[i])
            _hold(matches, newest, i)
        else:
            newest, oldest = _extend(matches, layout, line, at, s, i)
        if s < last and newest > 0:
            matches.link[oldest, NEXT] = matches.head[at + 1]
            matches.head[at + 1] = newest
        elif newest > 0:
            n = _read_complete(matches, newest, line.code[i], found, n)
    return n


@part
def _extend(matches, layout, line, at, s, i):
    """Gives occurrence i to the matches of a list that lack one of its place. Takes the matches
    out whose stage is complete then. Returns the newest and the oldest of these (0: none).

    The list is in order of initiators, the newest first. An older match has every occurrence that a
    newer one has. So the walk ends at the first match that has one of this place, and the complete
    matches are the oldest. A match that is too old is dropped, and all older ones with it.
    """
    head, begun, link, _, full = matches
    table, p = layout.table, layout.place[line.source[i]]
    several = table[s, TO] > table[s, FROM] + 1
    before, newest, oldest = np.int64(0), np.int64(0), np.int64(0)
    match = np.int64(head[at])
    while match > 0:
        old = line.time[i] - begun[match] > table[s, LIMIT]
        if several and not old and _has(matches, layout, line, match, s, p):
            break
        if not old:
            _hold(matches, match, i)
        whole = link[match, SIZE] == full[s]
        if old or (whole and newest == 0):
            if before > 0:
                link[before, NEXT] = 0
            else:
                head[at] = 0
        if old:
            while match > 0:
                match = _free(matches, match)
            break
        if whole:
            newest = newest if newest > 0 else match
            oldest = match
        before = match
        match = np.int64(link[match, NEXT])
    return newest, oldest


@inlined
def _hold(matches, match, position):
    size = matches.link[match, SIZE]
    matches.held[match, size] = position
    matches.link[match, SIZE] = size + 1


@part
def _has(matches, layout, line, match, s, p):
    """Whether a match has an occurrence of place p, which is of stage s."""
    for o in range(matches.full[s] - layout.table[s, COUNT], matches.link[match, SIZE]):
        if layout.place[line.source[matches.held[match, o]]] == p:
            return True
    return False


@part
def _read_complete(matches, match, code, found, n):
    while match > 0:
        found.code[n] = code
        for o in range(matches.full[-1]):
            found.position[n, o] = matches.held[match, o]
        n += 1
        match = _free(matches, match)
    return n


@part
def _count_waiting(matches, table, watermark):
    n = 0
    for at in range(len(matches.head)):
        match = np.int64(matches.head[at])
        while match > 0 and watermark - matches.begun[match] < table[at % len(table), LIMIT]:
            n += 1
            match = np.int64(matches.link[match, NEXT])
    return n


@part
def _read_waiting(matches, table, watermark, kept):
    """Reads the matches that wait. The oldest of each list comes first, as `_resume` expects."""
    n = len(kept.code)
    for at in range(len(matches.head)):
        match = np.int64(matches.head[at])
        while match > 0 and watermark - matches.begun[match] < table[at % len(table), LIMIT]:
            n -= 1
            kept.code[n] = at // len(table)
            kept.size[n] = matches.link[match, SIZE]
            for o in range(kept.size[n]):
                kept.position[n, o] = matches.held[match, o]
            match = np.int64(matches.link[match, NEXT])
