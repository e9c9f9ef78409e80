"""The compiled loops of `a ; b ; c ..` over distinct event types of one key, a context each.

`place`, `key`, `row` is the timeline: what arrives, in order of time, of one instant the last event
type of the sequence first (so that nothing meets what is simultaneous), each in order of rank.
`count` is the number of event types, `span` how long a match may be, `keys` the largest key code.
A match is found as a list of rows, one of each event type.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.compiled import njit


@njit
def timeline(bounds, key, time, row):
    """The arrivals of all event types as one: place, key, row. Event type p stands in
    bounds[p]:bounds[p + 1], in order of (time, rank)."""
    count = len(bounds) - 1
    n = len(key)
    out_place = np.empty(n, dtype=np.int16)
    out_key = np.empty(n, dtype=np.int32)
    out_row = np.empty(n, dtype=np.int64)
    at = bounds[:-1].copy()
    o = 0
    while o < n:
        instant = 2**63 - 1
        for p in range(count):
            if at[p] < bounds[p + 1]:
                instant = min(instant, time[at[p]])
        for p in range(count - 1, -1, -1):
            while at[p] < bounds[p + 1] and time[at[p]] == instant:
                out_place[o] = p
                out_key[o] = key[at[p]]
                out_row[o] = row[at[p]]
                at[p] += 1
                o += 1
    return out_place, out_key, out_row


@njit
def recent(count, place, key, row, time, span, kept_key, kept_level, kept, keys):
    """For each event type but the last the greatest match so far of those up to it; what is
    detected takes all that begin no later along (S3: every older one of the same types).

    kept[i, :kept_level[i] + 1] is such a match of key kept_key[i], before and after.
    """
    last = count - 1
    best = np.full((last, keys + 1, last), -1, dtype=np.int64)
    for i in range(len(kept_key)):
        best[kept_level[i], kept_key[i]] = kept[i]
    ends = 0
    for i in range(len(place)):
        ends += place[i] == last
    found_key = np.empty(ends, dtype=np.int32)
    found = np.empty((ends, count), dtype=np.int64)
    latest = np.full(keys + 1, -1, dtype=np.int64)
    n = 0
    for i in range(len(place)):
        p, k, r = place[i], key[i], row[i]
        if p == 0:
            best[0, k, 0] = r
        elif p < last:
            if best[p - 1, k, 0] >= 0:
                for q in range(p):
                    best[p, k, q] = best[p - 1, k, q]
                best[p, k, p] = r
        elif latest[k] >= 0 and time[found[latest[k], last]] == time[r]:
            found[latest[k], last] = r
        elif best[last - 1, k, 0] >= 0 and time[best[last - 1, k, 0]] >= time[r] - span:
            first = best[last - 1, k, 0]
            found_key[n] = k
            for q in range(last):
                found[n, q] = best[last - 1, k, q]
            found[n, last] = r
            latest[k] = n
            n += 1
            for q in range(last):
                if best[q, k, 0] >= 0 and time[best[q, k, 0]] <= time[first]:
                    best[q, k, 0] = -1
    kept_key, kept_level, kept = _alive(best, keys)
    return found_key[:n], found[:n], kept_key, kept_level, kept


@njit
def _alive(best, keys):
    last = best.shape[0]
    n = 0
    for p in range(last):
        for k in range(keys + 1):
            n += best[p, k, 0] >= 0
    key = np.empty(n, dtype=np.int32)
    level = np.empty(n, dtype=np.int16)
    kept = np.empty((n, last), dtype=np.int64)
    n = 0
    for p in range(last):
        for k in range(keys + 1):
            if best[p, k, 0] >= 0:
                key[n] = k
                level[n] = p
                kept[n] = best[p, k]
                n += 1
    return key, level, kept


@njit
def continuous(count, place, key, row, time, span, kept_key, kept_level, kept, keys):
    """Each initiator takes the first of each event type that comes after the one before.

    Of one key all initiators that have come equally far take the same next one: a list for
    each event type. `kept` as in `recent`.
    """
    last = count - 1
    room = len(kept_key)
    for i in range(len(place)):
        room += place[i] == 0
    found_key = np.empty(room, dtype=np.int32)
    found = np.full((room, count), -1, dtype=np.int64)
    level = np.empty(room, dtype=np.int16)
    following = np.empty(room, dtype=np.int64)
    head = np.full((last, keys + 1), -1, dtype=np.int64)
    tail = np.full((last, keys + 1), -1, dtype=np.int64)
    detected = np.empty(room, dtype=np.int64)
    n = 0
    for j in range(len(kept_key)):
        found_key[j] = kept_key[j]
        found[j, :last] = kept[j]
        level[j] = kept_level[j]
        following[j] = head[level[j], kept_key[j]]
        head[level[j], kept_key[j]] = j
        if following[j] < 0:
            tail[level[j], kept_key[j]] = j
    used = len(kept_key)
    for i in range(len(place)):
        p, k, r = place[i], key[i], row[i]
        if p == 0:
            found_key[used] = k
            found[used, 0] = r
            level[used] = 0
            following[used] = head[0, k]
            head[0, k] = used
            if following[used] < 0:
                tail[0, k] = used
            used += 1
            continue
        first = head[p - 1, k]
        j = first
        while j >= 0:
            found[j, p] = r
            level[j] = p
            if p == last and time[found[j, 0]] >= time[r] - span:
                detected[n] = j
                n += 1
            j = following[j]
        if first >= 0:
            if p < last:
                following[tail[p - 1, k]] = head[p, k]
                if head[p, k] < 0:
                    tail[p, k] = tail[p - 1, k]
                head[p, k] = first
            head[p - 1, k] = -1
            tail[p - 1, k] = -1
    waiting = np.flatnonzero(level[:used] < last)
    return (
        found_key[detected[:n]],
        found[detected[:n]],
        found_key[waiting],
        level[waiting],
        found[waiting, :last],
    )


NEXT, INSTANT, AT = 0, 1, 2
"""A node of a queue: the following one, when its occurrence was, which of the timeline that is."""


@njit
def _queues(count, carried, place, key, row, time, keys):
    """A queue for each key and event type, key * count + place, with what is carried in it, the
    first `carried` of the timeline: first and last node, the nodes, and of these the first free one
    and how many were ever used (-1 = none). Nodes are used again, the latest first: so they stay
    few, and near."""
    head = np.full((keys + 1) * count, -1, dtype=np.int64)
    tail = np.full((keys + 1) * count, -1, dtype=np.int64)
    node = np.empty((len(place), 3), dtype=np.int64)
    free = np.array([-1, 0])
    for i in range(carried):
        _push(np.int64(key[i]) * count + place[i], i, time[row[i]], head, tail, node, free)
    return head, tail, node, free


@njit
def _push(q, i, instant, head, tail, node, free):
    new = free[0]
    if new >= 0:
        free[0] = node[new, NEXT]
    else:
        new = free[1]
        free[1] += 1
    node[new, NEXT] = -1
    node[new, INSTANT] = instant
    node[new, AT] = i
    if head[q] < 0:
        head[q] = new
    else:
        node[tail[q], NEXT] = new
    tail[q] = new


@njit
def _pop(q, head, node, free):
    """Take the first out of a queue: which of the timeline it was."""
    first = head[q]
    head[q] = node[first, NEXT]
    node[first, NEXT] = free[0]
    free[0] = first
    return node[first, AT]


@njit
def _advance(last, q, now, span, head, node, free):
    """Drop from the front of each queue of a key, from q on, what can no longer be in a match; True
    if the fronts make up a match that ends now. What is not after the front of the queue before it
    never will be."""
    least = now - span - 1
    for p in range(q, q + last):
        while head[p] >= 0 and node[head[p], INSTANT] <= least:
            _pop(p, head, node, free)
        if head[p] < 0:
            return False
        least = node[head[p], INSTANT]
    return True


@njit
def _left(last, count, head, node, timeline):
    """What is still in the queues, as places in a timeline of that length."""
    mark = np.zeros(timeline, dtype=np.bool_)
    for q in range(len(head)):
        i = head[q] if q % count < last else -1
        while i >= 0:
            mark[node[i, AT]] = True
            i = node[i, NEXT]
    return np.flatnonzero(mark)


@njit
def chronicle(count, carried, place, key, row, time, span, keys):
    """Each last one takes the oldest of each event type: found_key, found[n, count], left."""
    last = count - 1
    head, tail, node, free = _queues(count, carried, place, key, row, time, keys)
    ends = 0
    for i in range(carried, len(place)):
        ends += place[i] == last
    found_key = np.empty(ends, dtype=np.int32)
    found = np.empty((ends, count), dtype=np.int64)
    n = 0
    for i in range(carried, len(place)):
        p, r = place[i], row[i]
        q = np.int64(key[i]) * count
        if p < last:
            if p == 0 or head[q + p - 1] >= 0:
                _push(q + p, i, time[r], head, tail, node, free)
        elif _advance(last, q, time[r], span, head, node, free):
            found_key[n] = key[i]
            for o in range(last):
                found[n, o] = row[_pop(q + o, head, node, free)]
            found[n, last] = r
            n += 1
    return found_key[:n], found[:n], _left(last, count, head, node, len(place))


@njit
def cumulative(count, carried, place, key, row, time, name, rank, span, keys):
    """All that is in some match ends in one: found_key, offsets, place, row of the entries in order
    of (time, name[place], rank, row), left.

    Of each queue that is what comes before the last that can stand behind it.
    """
    last = count - 1
    head, tail, node, free = _queues(count, carried, place, key, row, time, keys)
    n, e = 0, 0
    stop = np.empty(count, dtype=np.int64)
    found_key = np.empty(len(place), dtype=np.int32)
    offsets = np.empty(len(place) + 1, dtype=np.int64)
    offsets[0] = 0
    out_place = np.empty(len(place), dtype=np.int16)
    out_row = np.empty(len(place), dtype=np.int64)
    i = carried
    while i < len(place):
        p = place[i]
        now = time[row[i]]
        if p < last:
            q = np.int64(key[i]) * count + p
            if p == 0 or head[q - 1] >= 0:
                _push(q, i, now, head, tail, node, free)
            i += 1
            continue
        j = i
        while j < len(place) and place[j] == last and time[row[j]] == now:
            _push(np.int64(key[j]) * count + last, j, now, head, tail, node, free)
            j += 1
        while i < j:
            q = np.int64(key[i]) * count
            if head[q + last] >= 0 and _advance(last, q, now, span, head, node, free):
                found_key[n] = key[i]
                before = now + 1
                for o in range(last, -1, -1):
                    stop[o] = head[q + o]
                    newest = before
                    while stop[o] >= 0 and node[stop[o], INSTANT] < before:
                        newest = node[stop[o], INSTANT]
                        stop[o] = node[stop[o], NEXT]
                    before = newest
                e = _take(q, stop, head, node, free, row, name, rank, out_place, out_row, e)
                n += 1
                offsets[n] = e
            while head[q + last] >= 0:
                _pop(q + last, head, node, free)
            i += 1
    return (
        found_key[:n],
        offsets[: n + 1],
        out_place[:e],
        out_row[:e],
        _left(last, count, head, node, len(place)),
    )


@njit
def _take(q, stop, head, node, free, row, name, rank, out_place, out_row, e):
    """Take what stands before stop[p] out of each queue of a key, from q on, and write it in order
    of (time, name, rank, row) as entries from e on; returns where they end."""
    while True:
        first = -1
        instant = least = np.int64(0)
        for p in range(len(stop)):
            i = head[q + p]
            if i == stop[p]:
                continue
            r = row[node[i, AT]]
            if (
                first < 0
                or node[i, INSTANT] < instant
                or (
                    node[i, INSTANT] == instant
                    and (
                        name[p] < name[first]
                        or (
                            name[p] == name[first]
                            and (rank[r] < rank[least] or (rank[r] == rank[least] and r < least))
                        )
                    )
                )
            ):
                first, instant, least = p, node[i, INSTANT], r
        if first < 0:
            return e
        _pop(q + first, head, node, free)
        out_place[e] = first
        out_row[e] = least
        e += 1
