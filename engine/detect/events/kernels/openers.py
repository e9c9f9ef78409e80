"""Which opener (initiator) a terminator finds: `not`, `A`, `A*`, `P`, `P*`.

A terminator looks for the greatest opener of its key that is open and ended before the terminator
starts. An opener that ended before the instant `low` is no longer open. Openers are in order of
end. `chain` links each to the last greater one before it, so climbing the chain finds the greatest:

    opener    ends  starts  chain
    0           10       5     -1
    1           20       1      0     0 starts later: it is greater
    2           30      25     -1     nothing before it is greater

A terminator at 25 begins at opener 1, the last that has ended. It climbs to 0 if `low` is 10, and
stays at 1 if `low` is 15. A terminator at 40 begins and stays at 2.

>>> chain, end = np.array([-1, 0, -1]), np.array([10, 20, 30])
>>> climb(np.array([1, 1, 2]), chain, end, np.array([10, 15, 10]))
array([0, 1, 2])
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.core.columns.numba_cache import njit
from tidegate.engine.detect.events.kernels.columns import LAST, NEVER, order_of
from tidegate.engine.detect.events.kernels.instance_order import later
from tidegate.engine.detect.events.kernels.joins import seen_by_each


@njit
def previous_greater(columns, ranks, keys, ties):
    """For each opener the last greater one before it of its key, -1 = none. `ties`: an opener that
    starts with it counts as greater. State:

        last[key]   the key's last opener, -1 = none

    >>> a = Columns(
    ...     key=np.array([1, 1, 1]), start=np.array([5, 1, 25]), end=np.array([10, 20, 30]),
    ...     offsets=np.arange(4), row=np.arange(3), role=np.zeros(3),
    ... )
    >>> previous_greater(a, Ranks(a.start, np.zeros(3)), 1, True)
    array([-1,  0, -1])
    """
    key, start, order = columns.key, columns.start, order_of(columns, ranks)
    last = np.full(keys + 1, -1, dtype=np.int64)
    chain = np.empty(len(key), dtype=np.int64)
    for i in range(len(key)):
        j = last[key[i]]
        while j >= 0 and not (start[j] >= start[i] if ties else later(order, j, i)):
            j = chain[j]
        chain[i] = j
        last[key[i]] = i
    return chain


@njit
def climb(at, chain, end, low):
    """For each query the greatest opener with end >= low[q], from at[q] up its chain; -1 = none."""
    found = np.empty(len(at), dtype=np.int64)
    for q in range(len(at)):
        i = at[q]
        if i >= 0 and end[i] < low[q]:
            i = -1
        while i >= 0 and chain[i] >= 0 and end[chain[i]] >= low[q]:
            i = chain[i]
        found[q] = i
    return found


@njit
def marked(at, chain, key, end, low):
    """Marks the openers with end >= low[key], from each at[n] up its chain.

    >>> chain, key, end = np.array([-1, 0, -1]), np.array([1, 1, 1]), np.array([10, 20, 30])
    >>> marked(np.array([1]), chain, key, end, np.array([0, 0]))
    array([ True,  True, False])
    >>> marked(np.array([1]), chain, key, end, np.array([0, 15]))
    array([False,  True, False])
    """
    mark = np.zeros(len(key), dtype=np.bool_)
    for i in at:
        while i >= 0 and not mark[i] and end[i] >= low[key[i]]:
            mark[i] = True
            i = chain[i]
    return mark


@njit
def closed_before(key, start, keys):
    """For each terminator the latest start of the terminators before it that its key sees, `NEVER`
    = none; and for each key the latest start of all that it sees. Terminators are in closing order.
    An opener that ended before that start is no longer open. State:

        latest[key]   the latest start so far, `NEVER` = none

    >>> found, latest = closed_before(np.array([1, 2, 1]), np.array([10, 20, 30]), 2)
    >>> bool(found[0] == NEVER), found[2], latest[1:]
    (True, np.int64(10), array([30, 20]))
    """
    latest = np.full(keys + 1, NEVER, dtype=np.int64)
    found = np.empty(len(key), dtype=np.int64)
    for i in range(len(key)):
        found[i] = max(latest[key[i]], latest[0])
        latest[key[i]] = max(latest[key[i]], start[i])
    return found, seen_by_each(latest)


@njit
def closes(key, opened, closers, index, bounds):
    """For each opener the end of the first terminator that its key sees with start > opened[i];
    `LAST` if there is none. The terminators of key k are index[bounds[k]:bounds[k + 1]].

    Terminators are in order of end, not of start. So the search is over highest[p], the latest
    start among the terminators of the key up to p.

    >>> at = np.array([20, 40])
    >>> c = Columns(np.array([1, 1]), at, at, np.arange(3), np.array([0, 1]), np.zeros(2))
    >>> key, opened = np.array([1, 1, 1]), np.array([10, 20, 50])
    >>> found = closes(key, opened, c, np.arange(2), np.array([0, 0, 2]))
    >>> found[:2], bool(found[2] == LAST)
    (array([20, 40]), True)
    """
    start, end = closers.start, closers.end
    highest = np.empty(len(index), dtype=np.int64)
    for k in range(len(bounds) - 1):
        for p in range(bounds[k], bounds[k + 1]):
            highest[p] = start[index[p]]
            if p > bounds[k]:
                highest[p] = max(highest[p], highest[p - 1])
    found = np.full(len(key), LAST, dtype=np.int64)
    for i in range(len(key)):
        for own in range(2):
            k = own * key[i]
            low, high = int(bounds[k]), int(bounds[k + 1])
            while low < high:
                middle = (low + high) // 2
                if highest[middle] > opened[i]:
                    high = middle
                else:
                    low = middle + 1
            if low < bounds[k + 1]:
                found[i] = min(found[i], end[index[low]])
    return found
