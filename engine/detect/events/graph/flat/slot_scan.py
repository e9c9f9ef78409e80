"""The scan in `recent`: what is carried is the greatest partial match of each stage.

The state, for `a ; b ; c` (stages 0, 1, 2): a key code has a slot for each place (of a stage that
is repeated: for each of its last COUNT occurrences). A slot holds the place's last occurrence, and
before it the greatest instance of the stages before:

    slot[code * slots + place]    the positions of an instance, from the left (-1: none)
    taken[code]                   the instant of the key's last detection

    a@1    slot a: a@1    slot b: -
    b@2    slot a: a@1    slot b: a@1 b@2
    a@3    slot a: a@3    slot b: a@1 b@2
    c@4    detects a@1 b@2 c@4, and empties slot b. Slot a stays: a@3 is younger than all consumed
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
    """See the table above. Stage s has the slots room[s]:room[s + 1] of a key, and the positions
    base[s]:base[s + 1] of an instance. `match` has the positions of the instance at hand, `until`
    the latest instant of each event type in it."""

    slot: npt.NDArray[np.int32]
    taken: Int64
    room: Int64
    base: Int64
    match: Int64
    until: Int64


@njit
def recent(layout, line, offsets, watermark):
    """The greatest instance at each instant: code[n], positions[n, entries]; and of the slots that
    may still be of use after the watermark their codes, positions and how many of these there are.
    Carried slot n has the positions offsets[n]:offsets[n + 1].

    The greatest instance has the latest possible occurrence in every place at once: see
    `queues.oldest`, with later for older. So it grows with time, and the greatest of the stages
    before is all that an occurrence needs. What is consumed are, of each event type, the
    occurrences up to an instant. A slot that has one of these in a place can have no other there:
    all others are older. So it is empty until the next occurrence of its own place.
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
            # what was detected at this instant has consumed all of its event types up to it
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
    """Is there an instance that ends with e, or with something else since `first`? It is written to
    `match`."""
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
    """Put an occurrence into its slot, with the greatest instance of the stages before. Where that
    is too old by now, what the slot holds is no worse."""
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
    """The slot of the latest occurrence of a place."""
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
    """Write the greatest instance of the stages up to s to `match`; False: there is none. A stage's
    own are the latest of its slots, in order; the oldest of these says what stands before."""
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
    """Write the latest `count` occurrences of a stage's slots to `match`: the slot of the oldest
    present (-1: there are too few)."""
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
    """Keep the `count` latest of `present` positions and a new one, in order."""
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
    """Empty the slots of a key that hold what the instance at hand has, or what is older or
    simultaneous and of its event types."""
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
    """Write to own[position], for the own occurrence of each slot that may be of use after the
    watermark, the slot's number, from 1; how many there are."""
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
    """The slots in order of their own occurrences: so `_resume` finds them."""
    n = 0
    for i in range(len(own)):
        if own[i] > 0:
            s = layout.stage[layout.place[line.source[i]]]
            code[n] = line.code[i]
            size[n] = slots.base[s] + 1
            for o in range(size[n]):
                positions[n, o] = slots.slot[own[i] - 1, o]
            n += 1
