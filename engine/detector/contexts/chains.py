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
from numba import njit


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def _push(p, k, node, head, tail, following):
    following[node] = -1
    if head[p, k] < 0:
        head[p, k] = node
    else:
        following[tail[p, k]] = node
    tail[p, k] = node


@njit(cache=True)
def _advance(last, k, now, span, head, following, row, time):
    """Drop from the front of each queue what can no longer be in a match; True if the fronts make
    up a match that ends now. What is not after the front of the queue before it never will be."""
    while head[0, k] >= 0 and time[row[head[0, k]]] < now - span:
        head[0, k] = following[head[0, k]]
    for p in range(1, last):
        if head[p - 1, k] < 0:
            return False
        least = time[row[head[p - 1, k]]]
        while head[p, k] >= 0 and time[row[head[p, k]]] <= least:
            head[p, k] = following[head[p, k]]
    return head[last - 1, k] >= 0


@njit(cache=True)
def _queues(count, carried, place, key, keys):
    """Queues of what is not used up, by event type but the last and by key, with what is carried in
    them: the first `carried` of the timeline."""
    head = np.full((count, keys + 1), -1, dtype=np.int64)
    tail = np.full((count, keys + 1), -1, dtype=np.int64)
    following = np.empty(len(place), dtype=np.int64)
    for i in range(carried):
        _push(place[i], key[i], i, head, tail, following)
    return head, tail, following


@njit(cache=True)
def _left(last, head, following, keys):
    """What is still in the queues, as places in the timeline."""
    mark = np.zeros(len(following), dtype=np.bool_)
    for p in range(last):
        for k in range(keys + 1):
            node = head[p, k]
            while node >= 0:
                mark[node] = True
                node = following[node]
    return np.flatnonzero(mark)


@njit(cache=True)
def chronicle(count, carried, place, key, row, time, span, keys):
    """Each last one takes the oldest of each event type: found_key, found[n, count], left."""
    last = count - 1
    head, tail, following = _queues(count, carried, place, key, keys)
    ends = 0
    for i in range(carried, len(place)):
        ends += place[i] == last
    found_key = np.empty(ends, dtype=np.int32)
    found = np.empty((ends, count), dtype=np.int64)
    n = 0
    for i in range(carried, len(place)):
        p, k, r = place[i], key[i], row[i]
        if p < last:
            if p == 0 or head[p - 1, k] >= 0:
                _push(p, k, i, head, tail, following)
        elif _advance(last, k, time[r], span, head, following, row, time):
            found_key[n] = k
            for q in range(last):
                found[n, q] = row[head[q, k]]
                head[q, k] = following[head[q, k]]
            found[n, last] = r
            n += 1
    return found_key[:n], found[:n], _left(last, head, following, keys)


@njit(cache=True)
def cumulative(count, carried, place, key, row, time, rank, span, keys):
    """All that is in some match ends in one: found_key, offsets, place, row of the entries in order
    of (time, rank, row), left.

    Of each queue that is what comes before the last that can stand behind it.
    """
    last = count - 1
    head, tail, following = _queues(count, carried, place, key, keys)
    n, e = 0, 0
    taken = np.empty(count, dtype=np.int64)
    found_key = np.empty(len(place), dtype=np.int32)
    offsets = np.zeros(len(place) + 1, dtype=np.int64)
    out_place = np.empty(len(place), dtype=np.int16)
    out_row = np.empty(len(place), dtype=np.int64)
    i = carried
    while i < len(place):
        p, k = place[i], key[i]
        if p < last:
            if p == 0 or head[p - 1, k] >= 0:
                _push(p, k, i, head, tail, following)
            i += 1
            continue
        now = time[row[i]]
        j = i
        while j < len(place) and place[j] == last and time[row[j]] == now:
            _push(last, key[j], j, head, tail, following)
            j += 1
        while i < j:
            k = key[i]
            i += 1
            if head[last, k] < 0:
                continue
            if _advance(last, k, now, span, head, following, row, time):
                found_key[n] = k
                before = now + 1
                for q in range(last, -1, -1):
                    node = head[q, k]
                    taken[q] = node
                    newest = before
                    while node >= 0 and time[row[node]] < before:
                        newest = time[row[node]]
                        node = following[node]
                    head[q, k] = node
                    before = newest
                e = _merge(k, taken, head, following, row, time, rank, out_place, out_row, e)
                n += 1
                offsets[n] = e
            head[last, k] = -1
    return (
        found_key[:n],
        offsets[: n + 1],
        out_place[:e],
        out_row[:e],
        _left(last, head, following, keys),
    )


@njit(cache=True)
def _merge(k, taken, head, following, row, time, rank, out_place, out_row, e):
    """Write what was taken from each queue of key k, from taken[p] to its head, in order of (time,
    rank, row), as entries from e on; returns where they end."""
    while True:
        first, least = -1, np.int64(0)
        for p in range(len(taken)):
            if taken[p] == head[p, k]:
                continue
            r = row[taken[p]]
            if (
                first < 0
                or time[r] < time[least]
                or (
                    time[r] == time[least]
                    and (rank[r] < rank[least] or (rank[r] == rank[least] and r < least))
                )
            ):
                first, least = p, r
        if first < 0:
            return e
        out_place[e] = first
        out_row[e] = least
        e += 1
        taken[first] = following[taken[first]]
