"""The compiled loops of `A*(a, b, c)` over distinct event types.

The timeline is arrays `kind` (0, 1, 2: a, b, c), `key`, `time`, `rank`: what is carried, then what
arrives, in order of time, of one instant b before c before a. `length`: a c there is an own
terminator, so long after an a, and closes that; 0: a c closes all windows open. `span`: how long an
instance may be. There are `codes` key codes.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.compiled import njit
from tidegate.engine.detector.contexts.stage_queues import push, queues
from tidegate.engine.detector.kernels.columns import grow


@njit
def arrive(i, kind, key, time, head, tail, following):
    """Put an a or a b into its queue. Without an open window only a b of this instant is of use."""
    k = key[i]
    while head[0, k] < 0 <= head[1, k] and time[head[1, k]] < time[i]:
        head[1, k] = following[head[1, k]]
    push(kind[i], k, i, head, tail, following)


@njit
def left(head, following, time):
    """The positions of the open a's and of the b's since the first of them."""
    mark = np.zeros(len(following), dtype=np.bool_)
    for k in range(head.shape[1]):
        for p in range(2):
            node = head[p, k] if head[0, k] >= 0 else -1
            while node >= 0:
                mark[node] = time[node] >= time[head[0, k]]
                node = following[node]
    return np.flatnonzero(mark)


@njit
def using_up(all_a, last_a, carried, kind, key, time, length, span, codes):
    """What is detected uses up all it holds: key code, its end, the number of the detection that
    each position is in (-1 = none); what is left.

    Of the windows that a c closes it is the first that opened, the last (`last_a`), or the union of
    all (`all_a`). It has all b's since; what is older is in no window.
    """
    head, tail, following = queues(carried, kind, key, codes, 2)
    owner = np.full(len(kind), -1, dtype=np.int64)
    found_key = np.empty(len(kind), dtype=np.int32)
    end = np.empty(len(kind), dtype=np.int64)
    n = 0
    for i in range(carried, len(kind)):
        if kind[i] < 2:
            arrive(i, kind, key, time, head, tail, following)
            continue
        k = key[i]
        opened = -1
        while head[0, k] >= 0 and time[head[0, k]] <= time[i] - max(length, 1):
            if opened >= 0 and not all_a and not last_a:
                break
            node = head[0, k]
            head[0, k] = following[node]
            if time[node] < time[i] - span:
                continue
            if opened >= 0 and last_a:
                owner[opened] = -1
            owner[node] = n
            if opened < 0 or last_a:
                opened = node
        if opened < 0:
            continue
        if length == 0:
            owner[i] = n
        while head[1, k] >= 0:
            if time[head[1, k]] >= time[opened]:
                owner[head[1, k]] = n
            head[1, k] = following[head[1, k]]
        found_key[n] = k
        end[n] = time[i]
        n += 1
    return found_key[:n], end[:n], owner, left(head, following, time)


@njit
def continuous(carried, kind, key, time, rank, length, span, codes):
    """Every window that a c closes: key code, end, offsets, positions; what is left.

    Of the windows that open with the same b the first: the b is the initiator (S2).
    """
    head, tail, following = queues(carried, kind, key, codes, 2)
    initiated = np.full(codes, -1, dtype=np.int64)
    found_key = np.empty(len(kind), dtype=np.int32)
    end = np.empty(len(kind), dtype=np.int64)
    offsets = np.zeros(len(kind) + 1, dtype=np.int64)
    entry = np.empty(1024, dtype=np.int64)
    n, e = 0, 0
    for i in range(carried, len(kind)):
        if kind[i] < 2:
            arrive(i, kind, key, time, head, tail, following)
            continue
        k = key[i]
        while head[0, k] >= 0 and time[head[0, k]] <= time[i] - max(length, 1):
            a = head[0, k]
            head[0, k] = following[a]
            while head[1, k] >= 0 and time[head[1, k]] < time[a]:
                head[1, k] = following[head[1, k]]
            b = head[1, k]
            if time[a] < time[i] - span:
                continue
            if b >= 0 and time[b] == time[a] and rank[b] < rank[a]:
                if initiated[k] == b:
                    continue
                initiated[k] = b
            node = a
            while node >= 0:
                if e + 2 > len(entry):
                    entry = grow(entry, 2 * len(entry))
                entry[e] = node
                e += 1
                node = b if node == a else following[node]
            if length == 0:
                entry[e] = i
                e += 1
            found_key[n] = k
            end[n] = time[i]
            n += 1
            offsets[n] = e
    return found_key[:n], end[:n], offsets[: n + 1], entry[:e], left(head, following, time)
