"""The compiled loops of flat expressions (`rules.stages`) in `chronicle` and `cumulative`.

The timeline is arrays `place`, `key`, `time`: what is carried, then what arrives, in order of time,
of one instant the last stage first (so that nothing meets what is simultaneous with it), within a
stage in order of rank: there, a lower position is an older occurrence. `stage` has for each place
the number of its stage; stage s has the places begins[s]:begins[s + 1] and takes count[s] of them,
or if repeated[s] so many occurrences of its only one. An instance is found as positions, ascending.
There are `codes` key codes.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.compiled import njit
from tidegate.engine.detector.kernels.columns import NEVER

ENDLESS = 2**62


@njit
def push(p, k, node, head, tail, following):
    following[node] = -1
    if head[p, k] < 0:
        head[p, k] = node
    else:
        following[tail[p, k]] = node
    tail[p, k] = node


@njit
def queues(carried, place, key, codes, places):
    """A queue for each place and key, with what is carried in them: the first of the timeline."""
    head = np.full((places, codes), -1, dtype=np.int64)
    tail = np.full((places, codes), -1, dtype=np.int64)
    following = np.empty(len(place), dtype=np.int64)
    for i in range(carried):
        push(place[i], key[i], i, head, tail, following)
    return head, tail, following


@njit
def left(head, following):
    """The positions of what is still in the queues."""
    mark = np.zeros(len(following), dtype=np.bool_)
    for p in range(head.shape[0]):
        for k in range(head.shape[1]):
            node = head[p, k]
            while node >= 0:
                mark[node] = True
                node = following[node]
    return np.flatnonzero(mark)


@njit
def reachable(s, k, begins, count, repeated, head):
    """May something of stage s follow what is there? Else it never will be of use."""
    if s == 0:
        return True
    present = 0
    for p in range(begins[s - 1], begins[s]):
        present += head[p, k] >= 0
    return present >= count[s - 1] or (repeated[s - 1] and present > 0)


@njit
def oldest(k, since, begins, count, repeated, head, following, time, chosen):
    """Write the oldest instance to `chosen`; False if there is none. Drops from the front of each
    queue what is older than `since`, or not after the oldest of the stage before: it is of no
    use."""
    bound = since - 1
    base = 0
    for s in range(len(count)):
        present = 0
        for p in range(begins[s], begins[s + 1]):
            node = head[p, k]
            while node >= 0 and time[node] <= bound:
                node = following[node]
            head[p, k] = node
            if repeated[s]:
                while node >= 0 and present < count[s]:
                    chosen[base + present] = node
                    present += 1
                    node = following[node]
                continue
            if node < 0:
                continue
            o = min(present, count[s])
            present += 1
            while o > 0 and chosen[base + o - 1] > node:
                if o < count[s]:
                    chosen[base + o] = chosen[base + o - 1]
                o -= 1
            if o < count[s]:
                chosen[base + o] = node
        if present < count[s]:
            return False
        base += count[s]
        bound = time[chosen[base - 1]]
    return True


@njit
def chronicle(begins, stage, count, repeated, carried, place, key, time, span, codes):
    """The oldest instance, as soon as there is one: its key code, its positions; what is left.

    It is the oldest of each stage, one stage after the other: the times of no other instance are
    older anywhere. There is never a second one: each holds what arrives now.
    """
    last, total = len(count) - 1, count.sum()
    head, tail, following = queues(carried, place, key, codes, len(stage))
    ends = 0
    for i in range(carried, len(place)):
        ends += stage[place[i]] == last
    found_key = np.empty(ends, dtype=np.int32)
    found = np.empty((ends, total), dtype=np.int64)
    chosen = np.empty(total, dtype=np.int64)
    n = 0
    for i in range(carried, len(place)):
        p, k = place[i], key[i]
        s = stage[p]
        if not reachable(s, k, begins, count, repeated, head):
            continue
        push(p, k, i, head, tail, following)
        if s == last and oldest(
            k, time[i] - span, begins, count, repeated, head, following, time, chosen
        ):
            found_key[n] = k
            for o in range(total):
                node = chosen[o]
                found[n, o] = node
                head[place[node], k] = following[node]
            n += 1
    return found_key[:n], found[:n], left(head, following)


@njit
def take(k, n, begins, count, repeated, head, following, time, owner):
    """Use up what is in some instance: of the last stage all, of each other what comes before the
    last that can stand behind it. What is older than any instance has been dropped."""
    before = ENDLESS
    newest = np.empty(len(head), dtype=np.int64)
    for s in range(len(count) - 1, -1, -1):
        taken = 0
        first = head[begins[s], k]
        for p in range(begins[s], begins[s + 1]):
            newest[p] = NEVER
            while head[p, k] >= 0 and time[head[p, k]] < before:
                owner[head[p, k]] = n
                newest[p] = time[head[p, k]]
                head[p, k] = following[head[p, k]]
                taken += 1
        if repeated[s]:
            for _ in range(taken - count[s]):
                first = following[first]
            before = time[first]
        else:
            before = np.sort(newest[begins[s] : begins[s + 1]])[-count[s]]


@njit
def cumulative(begins, stage, count, repeated, carried, place, key, time, span, codes):
    """The union of all instances: its key code, the number of the union that each position is in
    (-1 = none); what is left."""
    last = len(count) - 1
    head, tail, following = queues(carried, place, key, codes, len(stage))
    owner = np.full(len(place), -1, dtype=np.int64)
    found_key = np.empty(len(place), dtype=np.int32)
    chosen = np.empty(count.sum(), dtype=np.int64)
    n = 0
    i = carried
    while i < len(place):
        now = time[i]
        j = i
        while j < len(place) and time[j] == now:
            s = stage[place[j]]
            if reachable(s, key[j], begins, count, repeated, head):
                push(place[j], key[j], j, head, tail, following)
            j += 1
        for e in range(i, j):
            k = key[e]
            if stage[place[e]] == last and oldest(
                k, now - span, begins, count, repeated, head, following, time, chosen
            ):
                found_key[n] = k
                take(k, n, begins, count, repeated, head, following, time, owner)
                n += 1
        i = j
    return found_key[:n], owner, left(head, following)


@njit
def united(owner, n):
    """The positions in each of n unions: offsets, positions."""
    offsets = np.zeros(n + 1, dtype=np.int64)
    for o in owner:
        if o >= 0:
            offsets[o + 1] += 1
    offsets = np.cumsum(offsets)
    at = offsets[:-1].copy()
    out = np.empty(offsets[-1], dtype=np.int64)
    for i in range(len(owner)):
        if owner[i] >= 0:
            out[at[owner[i]]] = i
            at[owner[i]] += 1
    return offsets, out
