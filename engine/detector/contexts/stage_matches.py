"""The compiled loops of flat expressions (`rules.stages`) in `continuous` and `recent`.

Names are those of `stage_queues`. The carried part of the timeline are the entries of what is half
matched, the n-th from offsets[n] on.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.compiled import njit
from tidegate.engine.detector.kernels.columns import NEVER


@njit
def holds(held, since, until, place, p):
    found = False
    for o in range(since, until):
        found |= place[held[o]] == p
    return found


@njit
def continuous(stage, count, repeated, offsets, place, key, time, span, codes):
    """Each initiator takes the first that it lacks, stage by stage: key code, positions; the same
    of those that wait, and how many of their positions are filled.

    Of one key they stand in one line, in order of their initiators: those before are as far or
    farther, and in a stage have all that those behind them have. So it is enough to walk back from
    the last in the stage to the first that has the event type.
    """
    stages, full = len(count), np.cumsum(count)
    carried, used = offsets[-1], len(offsets) - 1
    room = used
    for i in range(carried, len(place)):
        room += stage[place[i]] == 0
    held = np.full((room, full[-1]), -1, dtype=np.int64)
    filled = np.zeros(room, dtype=np.int64)
    level = np.zeros(room, dtype=np.int64)
    of_key = np.empty(room, dtype=np.int32)
    previous = np.empty(room, dtype=np.int64)
    newest = np.full(codes, -1, dtype=np.int64)
    tail = np.full((stages + 1, codes), -1, dtype=np.int64)
    detected = np.empty(room, dtype=np.int64)
    n = 0
    for node in range(used):
        k = key[offsets[node]]
        filled[node] = offsets[node + 1] - offsets[node]
        held[node, : filled[node]] = np.arange(offsets[node], offsets[node + 1])
        while filled[node] >= full[level[node]]:
            level[node] += 1
        of_key[node] = k
        previous[node] = newest[k]
        newest[k] = node
        tail[level[node], k] = node
    for i in range(carried, len(place)):
        p, k = place[i], key[i]
        s = stage[p]
        node = tail[s, k]
        moved = -1
        while node >= 0 and level[node] == s:
            if not repeated[s] and holds(held[node], full[s] - count[s], filled[node], place, p):
                break
            held[node, filled[node]] = i
            filled[node] += 1
            if filled[node] == full[s]:
                level[node] += 1
                moved = max(moved, node)
                detected[n] = node
                n += s == stages - 1 and time[held[node, 0]] >= time[i] - span
            node = previous[node]
        if moved >= 0:
            tail[s + 1, k] = moved
            if moved == tail[s, k]:
                tail[s, k] = -1
        if s == 0:
            held[used, 0] = i
            filled[used] = 1
            level[used] = count[0] == 1
            of_key[used] = k
            previous[used] = newest[k]
            newest[k] = used
            tail[level[used], k] = used
            detected[n] = used
            n += level[used] == stages
            used += 1
    waiting = np.flatnonzero(level[:used] < stages)
    return (
        of_key[detected[:n]],
        held[detected[:n]],
        of_key[waiting],
        held[waiting],
        filled[waiting],
    )


@njit
def recent(begins, stage, count, repeated, offsets, place, key, time, span, codes):
    """The greatest instance, and what is half matched, that takes nothing used up: key code,
    positions; the same of the slots, and how many of their positions are filled.

    A slot for each place (or of one that is repeated, for each of the last `count`): its last
    occurrence with the greatest instance of the stages before that ended before it. The greatest
    instance of a stage is made of its slots; the oldest of them says what stands before. It has the
    latest occurrence possible in each place: where one of them is used up, so is all it might take
    instead (S3: every older one of the same type).
    """
    stages, total, carried = len(count), count.sum(), offsets[-1]
    full = np.cumsum(count)
    rooms = np.zeros(stages + 1, dtype=np.int64)
    for s in range(stages):
        rooms[s + 1] = rooms[s] + (count[s] if repeated[s] else begins[s + 1] - begins[s])
    slot = np.full((rooms[-1], codes, total), -1, dtype=np.int64)
    for node in range(len(offsets) - 1):
        a, b = offsets[node], offsets[node + 1]
        to = _make_room(place[b - 1], key[a], begins, stage, repeated, rooms, slot)
        slot[to, key[a], : b - a] = np.arange(a, b)
    ends = 0
    for i in range(carried, len(place)):
        ends += stage[place[i]] == stages - 1
    found_key = np.empty(ends, dtype=np.int32)
    found = np.empty((ends, total), dtype=np.int64)
    match = np.empty(total, dtype=np.int64)
    decided = np.full(codes, NEVER, dtype=np.int64)
    n = 0
    i = carried
    while i < len(place):
        now = time[i]
        j = i
        while j < len(place) and time[j] == now:
            k = key[j]
            s = stage[place[j]]
            if s == 0 or _greatest(s - 1, k, count, full, rooms, slot, match):
                to = _make_room(place[j], k, begins, stage, repeated, rooms, slot)
                if s > 0:
                    slot[to, k, : full[s - 1]] = match[: full[s - 1]]
                slot[to, k, full[s] - count[s]] = j
            j += 1
        for e in range(i, j):
            k = key[e]
            if (
                stage[place[e]] < stages - 1
                or decided[k] == now
                or not _greatest(stages - 1, k, count, full, rooms, slot, match)
            ):
                continue
            decided[k] = now
            if match.max() >= i and time[match[: count[0]].min()] >= now - span:
                found_key[n] = k
                found[n] = np.sort(match)
                _use_up(k, found[n], place, time, slot)
                n += 1
        i = j
    return found_key[:n], found[:n], *_filled(count, full, rooms, slot)


@njit
def _filled(count, full, rooms, slot):
    """The slots that are: key code, positions, how many positions."""
    room = (slot[:, :, 0] >= 0).sum()
    of_key = np.empty(room, dtype=np.int32)
    kept = np.full((room, full[-1]), -1, dtype=np.int64)
    filled = np.empty(room, dtype=np.int64)
    n = 0
    for s in range(len(count)):
        size = full[s] - count[s] + 1
        for q in range(rooms[s + 1] - 1, rooms[s] - 1, -1):
            for k in range(slot.shape[1]):
                if slot[q, k, 0] >= 0:
                    of_key[n] = k
                    kept[n, :size] = np.sort(slot[q, k, :size])
                    filled[n] = size
                    n += 1
    return of_key, kept, filled


@njit
def _make_room(p, k, begins, stage, repeated, rooms, slot):
    """The slot of what is the latest in its place now."""
    s = stage[p]
    if not repeated[s]:
        return rooms[s] + p - begins[s]
    for to in range(rooms[s + 1] - 1, rooms[s], -1):
        slot[to, k] = slot[to - 1, k]
    return rooms[s]


@njit
def _greatest(s, k, count, full, rooms, slot, match):
    """Write the greatest instance of the stages up to s to `match`; False if there is none."""
    base = full[s] - count[s]
    present = 0
    low = -1
    for q in range(rooms[s], rooms[s + 1]):
        last = slot[q, k, base]
        if last < 0:
            continue
        if low < 0 or last < slot[low, k, base]:
            low = q
        o = min(present, count[s])
        present += 1
        while o > 0 and match[base + o - 1] < last:
            if o < count[s]:
                match[base + o] = match[base + o - 1]
            o -= 1
        if o < count[s]:
            match[base + o] = last
    if present < count[s]:
        return False
    match[:base] = slot[low, k, :base]
    return True


@njit
def _use_up(k, match, place, time, slot):
    """Empty the slots that hold any of these, or what is older or simultaneous in its place."""
    for q in range(len(slot)):
        if _used(slot[q, k], match, place, time):
            slot[q, k] = -1


@njit
def _used(rows, match, place, time):
    for i in rows:
        for j in match:
            if i >= 0 and place[i] == place[j] and time[i] <= time[j]:
                return True
    return False
