"""The scan in `recent`. It carries the greatest partial match of each stage.

The state, for `a ; b ; c` (stages 0, 1, 2): a key code has a slot for each place. A repeated stage
has a slot for each of its last COUNT occurrences. A slot holds the place's last occurrence, and
before it the greatest instance of the stages before:

    slot[code * slots + place]    the positions of an instance, from the left (-1: none)
    taken[code]                   the instant of the key's last detection

    a@1    slot a: a@1    slot b: -
    b@2    slot a: a@1    slot b: a@1 b@2
    a@3    slot a: a@3    slot b: a@1 b@2
    c@4    detects a@1 b@2 c@4, and empties slot b. Slot a stays: a@3 is later than a@1
    b@5    slot a: a@3    slot b: a@3 b@5
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidegate.engine.core.columns.numba_cache import inlined, njit, part
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.flat.line import COUNT, FROM, LIMIT, REPEATED, TO
from tidegate.engine.detect.events.kernels.columns import NEVER


class Slots(NamedTuple):
    """The state (see the table above), and scratch.

    room    stage s has the slots room[s]:room[s + 1] of a key
    base    stage s has the positions base[s]:base[s + 1] of an instance
    match   scratch: the positions of one instance
    until   scratch: the latest instant of each event type in that instance
    """

    slot: npt.NDArray[np.int32]
    taken: Int64
    room: Int64
    base: Int64
    match: Int64
    until: Int64


@njit
def recent(layout, line, offsets, watermark):
    """The greatest instance at each instant: code[n], positions[n, entry]. And the slots that may
    be of use after the watermark: their codes, positions and numbers of positions. Carried slot n
    has the positions offsets[n]:offsets[n + 1].

    The greatest instance has the latest possible occurrence in every place at once. The proof is
    that of `queues.oldest`, with "later" for "older". So an occurrence needs only the greatest
    instance of the stages before. A detection consumes the occurrences of its event types up to an
    instant each. A slot that holds a consumed occurrence has no substitute for it, as all others
    are older. So the slot is empty until the next occurrence of its place.

    `a ; b` on a@1 a@2 b@3 a@4:

    >>> layout = Layout(
    ...     np.array([0, 1]), np.array([0, 1]), np.array([0, 1]),
    ...     np.array([[0, 1, 1, 0, ENDLESS], [1, 2, 1, 0, ENDLESS]]),
    ... )
    >>> line = Line(
    ...     source=np.array([0, 0, 1, 0]), code=np.zeros(4, dtype=np.int32),
    ...     time=np.array([1, 2, 3, 4]), row=np.arange(4), carried=0, codes=1, rows=0,
    ... )
    >>> _, found, _, slots, size = recent(layout, line, np.array([0]), 4)
    >>> found.tolist(), slots[:, 0].tolist(), size.tolist()
    ([[1, 2]], [3], [1])
    """
    table = layout.table
    slots = _open_slots(layout, line.codes)
    _resume(slots, layout, line, offsets)
    total, last, room = slots.base[-1], len(table) - 1, 0
    for i in range(line.carried, len(line.code)):
        room += layout.stage[layout.place[line.source[i]]] == last
    code = np.empty(room, dtype=np.int32)
    positions = np.empty((room, total), dtype=np.int64)
    n = _recent(layout, line, slots, code, positions)
    own = np.zeros(len(line.code), dtype=np.int32)
    kept = _mark_kept(slots, table, line.time, watermark, own)
    kept_code = np.empty(kept, dtype=np.int32)
    kept_positions = np.full((kept, total), -1, dtype=np.int64)
    size = np.empty(kept, dtype=np.int64)
    _read_kept(slots, layout, line, own, kept_code, kept_positions, size)
    return code[:n], positions[:n], kept_code, kept_positions, size


@njit
def _open_slots(layout, codes):
    table = layout.table
    room = np.zeros(len(table) + 1, dtype=np.int64)
    for s in range(len(table)):
        several = table[s, COUNT] if table[s, REPEATED] else table[s, TO] - table[s, FROM]
        waits = s < len(table) - 1 or table[s, COUNT] > 1
        room[s + 1] = room[s] + (several if waits else 0)
    base = np.zeros(len(table) + 1, dtype=np.int64)
    base[1:] = np.cumsum(table[:, COUNT])
    return Slots(
        np.full((codes * room[-1], base[-1]), -1, dtype=np.int32),
        np.full(codes, NEVER, dtype=np.int64),
        room,
        base,
        np.empty(base[-1], dtype=np.int64),
        np.empty(layout.kind.max() + 1, dtype=np.int64),
    )


@part
def _resume(slots, layout, line, offsets):
    for n in range(len(offsets) - 1):
        first, until = offsets[n], offsets[n + 1]
        p = layout.place[line.source[until - 1]]
        to = _own_slot(slots, layout, np.int64(line.code[first]), p)
        for i in range(first, until):
            slots.slot[to, i - first] = i


@part
def _recent(layout, line, slots, code, positions):
    place, stage, kind, table = layout
    last = len(table) - 1
    ending = kind[table[last, FROM]]
    n = 0
    i = line.carried
    while i < len(line.code):
        now, p = line.time[i], place[line.source[i]]
        if stage[p] < last:
            # a detection at this instant has consumed the occurrences of its event types up to now
            if slots.taken[line.code[i]] < now or kind[p] != ending:
                _put(slots, layout, line, p, i)
            i += 1
            continue
        first = i
        while i < len(line.code) and line.time[i] == now and stage[place[line.source[i]]] == last:
            if table[last, COUNT] > 1:
                _put(slots, layout, line, place[line.source[i]], i)
            i += 1
        for e in range(i - 1, first - 1, -1):
            k = np.int64(line.code[e])
            if slots.taken[k] < now and _complete(slots, table, line, k, e, first):
                slots.taken[k] = now
                code[n] = k
                for o in range(positions.shape[1]):
                    positions[n, o] = slots.match[o]
                _consume(slots, layout, line, k)
                n += 1
    return n


@inlined
def _complete(slots, table, line, k, e, first):
    """Whether an instance ends at this instant: with occurrence e, or with another of the last
    stage from `first` on. Writes it to `match`."""
    last, match = len(table) - 1, slots.match
    if table[last, COUNT] > 1:
        if not _greatest(slots, table, last, k) or match[-1] < first:
            return False
    else:
        if last > 0 and not _greatest(slots, table, last - 1, k):
            return False
        match[-1] = e
    return line.time[e] - line.time[match[0]] <= table[last, LIMIT]


@inlined
def _put(slots, layout, line, p, i):
    """Puts an occurrence into its slot, after the greatest instance of the stages before. If that
    is too old by now, the slot stays as it is: what it holds is too old as well."""
    k, s, match = np.int64(line.code[i]), layout.stage[p], slots.match
    table = layout.table
    if s == 0 or (
        _greatest(slots, table, s - 1, k) and line.time[i] - line.time[match[0]] <= table[s, LIMIT]
    ):
        to = _own_slot(slots, layout, k, p)
        for o in range(slots.base[s]):
            slots.slot[to, o] = match[o]
        slots.slot[to, slots.base[s]] = i


@inlined
def _own_slot(slots, layout, k, p):
    """The slot for the next occurrence of a place. A repeated stage moves its slots on by one."""
    s, table, room = layout.stage[p], layout.table, slots.room
    first = k * room[-1] + room[s]
    if table[s, REPEATED] == 0:
        return first + p - table[s, FROM]
    for to in range(first + table[s, COUNT] - 1, first, -1):
        for o in range(slots.base[s] + 1):
            slots.slot[to, o] = slots.slot[to - 1, o]
    return first


@inlined
def _greatest(slots, table, s, k):
    """Writes the greatest instance of the stages up to s to `match`. Returns whether there is one.
    Stage s gives the latest COUNT occurrences of its slots, in order. The slot of the oldest of
    these gives the instance of the stages before."""
    slot, room, base, match = slots.slot, slots.room, slots.base, slots.match
    first, until, own = k * room[-1] + room[s], k * room[-1] + room[s + 1], base[s]
    low = first
    if until > first + 1:
        low = _latest_of_several(slots, table[s, COUNT], first, until, own)
    else:
        match[own] = slot[first, own]
    if low < 0 or match[own] < 0:
        return False
    for o in range(own):
        match[o] = slot[low, o]
    return True


@part
def _latest_of_several(slots, count, first, until, own):
    """Writes the latest `count` occurrences of a stage's slots to `match`. Returns the slot with
    the oldest occurrence of all (-1: there are too few)."""
    slot, match = slots.slot, slots.match
    low, present = np.int64(-1), 0
    for q in range(first, until):
        position = np.int64(slot[q, own])
        if position < 0:
            continue
        if low < 0 or position < slot[low, own]:
            low = np.int64(q)
        _insert_latest(match, own, present, count, position)
        present += 1
    return low if present >= count else np.int64(-1)


@part
def _insert_latest(match, own, present, count, position):
    """Inserts a position into the sorted match[own:], which has `present` of them. Keeps the
    `count` latest."""
    if present < count:
        o = present
        while o > 0 and match[own + o - 1] > position:
            match[own + o] = match[own + o - 1]
            o -= 1
        match[own + o] = position
    elif position > match[own]:
        o = 0
        while o + 1 < count and match[own + o + 1] < position:
            match[own + o] = match[own + o + 1]
            o += 1
        match[own + o] = position


@inlined
def _consume(slots, layout, line, k):
    """Empties the slots of a key that hold a consumed occurrence: one of the instance in `match`,
    or one of the same event type that is not later."""
    until, match = slots.until, slots.match
    for n in range(len(until)):
        until[n] = NEVER
    for o in range(len(match)):
        kind = layout.kind[layout.place[line.source[match[o]]]]
        until[kind] = max(until[kind], line.time[match[o]])
    for s in range(len(slots.base) - 1):
        own = slots.base[s]
        for q in range(k * slots.room[-1] + slots.room[s], k * slots.room[-1] + slots.room[s + 1]):
            if slots.slot[q, own] >= 0 and _consumed(slots, layout, line, q, own):
                slots.slot[q, own] = -1


@inlined
def _consumed(slots, layout, line, q, own):
    found = False
    for o in range(own + 1):
        i = slots.slot[q, o]
        found |= line.time[i] <= slots.until[layout.kind[layout.place[line.source[i]]]]
    return found


@part
def _mark_kept(slots, table, time, watermark, own):
    """Marks the slots that may be of use after the watermark: own[position] of the slot's own
    occurrence is the slot's number, counted from 1. Returns how many there are."""
    n = 0
    for base in range(0, len(slots.slot), max(slots.room[-1], 1)):
        for s in range(len(table)):
            limit = table[min(s + 1, len(table) - 1), LIMIT]
            for q in range(base + slots.room[s], base + slots.room[s + 1]):
                position = slots.slot[q, slots.base[s]]
                if position >= 0 and watermark - time[slots.slot[q, 0]] < limit:
                    own[position] = q + 1
                    n += 1
    return n


@part
def _read_kept(slots, layout, line, own, code, positions, size):
    """Reads the marked slots in order of their own occurrences, as `_resume` expects."""
    n = 0
    for i in range(len(own)):
        if own[i] > 0:
            s = layout.stage[layout.place[line.source[i]]]
            code[n] = line.code[i]
            size[n] = slots.base[s] + 1
            for o in range(size[n]):
                positions[n, o] = slots.slot[own[i] - 1, o]
            n += 1
