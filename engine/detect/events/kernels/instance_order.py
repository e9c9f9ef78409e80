"""The order of instances (S1): which of two is the greater.

The instance that starts later is the greater. Between equal starts the times of their occurrences
decide, from the oldest on; then the ranks of these; then the ticks:

    instance x   10 15 30        x and y differ first in their second occurrence:
    instance y   10 20 30        20 is later than 15, so y is greater than x
    instance z   10              z ends where y goes on, so z is greater than y

>>> ranks = Ranks(time=np.array([10, 15, 20, 30]), rank=np.zeros(4, dtype=np.int64))
>>> x, y, z = np.array([0, 1, 3]), np.array([0, 2, 3]), np.array([0])
>>> bool(later_list(y, x, ranks)), bool(later_list(z, y, ranks))
(True, True)
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.core.columns.numba_cache import njit
from tidegate.engine.detect.events.kernels.columns import TICK_RANK, order_of


@njit
def later(order, i, j):
    """Whether instance i is greater than instance j."""
    start, offsets, row, ranks = order
    if start[i] != start[j]:
        return start[i] > start[j]
    return later_list(row[offsets[i] : offsets[i + 1]], row[offsets[j] : offsets[j + 1]], ranks)


@njit
def later_list(left, right, ranks):
    """Whether one list of occurrences is greater than another. Each is in order of (time, rank).
    Times decide first, from the oldest on; then ranks; then ticks."""
    time, rank = ranks
    i, j = skip_ticks(left, 0, rank), skip_ticks(right, 0, rank)
    while i < len(left) and j < len(right):
        if time[left[i]] != time[right[j]]:
            return time[left[i]] > time[right[j]]
        i, j = skip_ticks(left, i + 1, rank), skip_ticks(right, j + 1, rank)
    if i < len(left) or j < len(right):
        return i == len(left)
    ordered = order_of_ranks(left, right, ranks)
    if ordered == 0:
        ordered = order_of_ticks(left, right, ranks)
    if ordered != 0:
        return ordered > 0
    # two occurrences with equal values (S5) need some order: `every` and `[i]` count them in it
    for p in range(len(left)):
        if left[p] != right[p]:
            return left[p] > right[p]
    return False


@njit
def order_of_ranks(left, right, ranks):
    """Compares two lists with equal times by their ranks: 1 if the left is greater, -1 if the right
    is, 0 if they are alike.

    The lowest occurrence that only one of the lists has decides: that list is the smaller. Negative
    ranks order all occurrences, so the lists are searched for it to their ends. Other ranks order
    the simultaneous only, so the first difference is the lowest.

    >>> ranks = Ranks(time=np.array([10, 20, 20]), rank=np.array([0, 1, 2]))
    >>> order_of_ranks(np.array([0, 2]), np.array([0, 1]), ranks)
    1
    """
    time, rank = ranks
    i, j = skip_ticks(left, 0, rank), skip_ticks(right, 0, rank)
    least, found = np.int64(0), 0
    while i < len(left) or j < len(right):
        if j == len(right):
            earlier = True
        elif i == len(left):
            earlier = False
        elif rank[left[i]] == rank[right[j]] and time[left[i]] == time[right[j]]:
            i, j = skip_ticks(left, i + 1, rank), skip_ticks(right, j + 1, rank)
            continue
        elif rank[left[i]] >= 0:
            return 1 if rank[left[i]] > rank[right[j]] else -1
        else:
            earlier = after(right[j], left[i], ranks)
        only = rank[left[i]] if earlier else rank[right[j]]
        if found == 0 or only < least:
            least, found = only, -1 if earlier else 1
        if earlier:
            i = skip_ticks(left, i + 1, rank)
        else:
            j = skip_ticks(right, j + 1, rank)
    return found


@njit
def order_of_ticks(left, right, ranks):
    """Compares two lists with the same occurrences by the instants of their ticks, from the oldest
    on: 1 if the left is greater, -1 if the right is, 0 if they are alike."""
    time, rank = ranks
    i, j = 0, 0
    while True:
        while i < len(left) and rank[left[i]] != TICK_RANK:
            i += 1
        while j < len(right) and rank[right[j]] != TICK_RANK:
            j += 1
        if i == len(left) or j == len(right):
            return int(i == len(left)) - int(j == len(right))
        if time[left[i]] != time[right[j]]:
            return 1 if time[left[i]] > time[right[j]] else -1
        i += 1
        j += 1


@njit
def skip_ticks(rows, p, rank):
    """The first place from p on that has no tick."""
    while p < len(rows) and rank[rows[p]] == TICK_RANK:
        p += 1
    return p


@njit
def after(left, right, ranks):
    """Whether `left` stands after `right` among the entries of an instance."""
    time, rank = ranks
    if time[left] != time[right]:
        return time[left] > time[right]
    if rank[left] != rank[right]:
        return rank[left] > rank[right]
    return left > right


@njit
def order_of_lists(left, right, ranks):
    """Compares two lists of occurrences by their ranks alone, from the lowest on: 1 if the left is
    greater, -1 if the right is, 0 if they are alike. A list is smaller than one that continues it.

    >>> ranks = Ranks(time=np.array([10, 10, 10]), rank=np.array([0, 1, 2]))
    >>> order_of_lists(np.array([0, 2]), np.array([0, 1]), ranks)
    1
    >>> order_of_lists(np.array([0]), np.array([0, 1]), ranks)
    -1
    """
    a, b = ranked(left, ranks), ranked(right, ranks)
    for i in range(min(len(a), len(b))):
        if precedes(a[i], b[i], ranks):
            return -1
        if precedes(b[i], a[i], ranks):
            return 1
    return (len(a) > len(b)) - (len(a) < len(b))


@njit
def ranked(rows, ranks):
    """The occurrences of a list without ticks, the lowest first (insertion sort)."""
    found = np.empty(len(rows), dtype=np.int64)
    n = 0
    for row in rows:
        if ranks.rank[row] == TICK_RANK:
            continue
        p = n
        while p > 0 and precedes(row, found[p - 1], ranks):
            found[p] = found[p - 1]
            p -= 1
        found[p] = row
        n += 1
    return found[:n]


@njit
def precedes(left, right, ranks):
    """Whether `left` is lower in rank than `right`."""
    time, rank = ranks
    if rank[left] < 0 or time[left] == time[right]:
        return rank[left] < rank[right]
    return time[left] < time[right]


@njit
def sort_by_rank(order, group, columns, ranks):
    """Sorts the instances `order` within each group by their ranks, then by their starts (S4).
    group[i] is the group of order[i]. The members of a group stand together."""
    start, offsets, row = columns.start, columns.offsets, columns.row
    for i in range(1, len(order)):
        new = order[i]
        p = i
        while p > 0 and group[p - 1] == group[i]:
            known = order[p - 1]
            rows = row[offsets[known] : offsets[known + 1]]
            lower = order_of_lists(row[offsets[new] : offsets[new + 1]], rows, ranks)
            if lower > 0 or (lower == 0 and start[new] >= start[known]):
                break
            order[p] = known
            p -= 1
        order[p] = new


@njit
def greatest_per_end(columns, ranks, keys):
    """The greatest instance of each (key, end): Carlson & Lisper's policy `rem`. State:

        last[key]   the place in `kept` of the key's latest instance, -1 = none

    Two instances of key 1 end at 30. The one that starts at 20 is the greater:

    >>> a = Columns(
    ...     key=np.array([1, 1, 1]), start=np.array([5, 20, 40]), end=np.array([30, 30, 40]),
    ...     offsets=np.arange(4), row=np.arange(3), role=np.zeros(3, dtype=np.int16),
    ... )
    >>> greatest_per_end(a, Ranks(a.start, np.zeros(3, dtype=np.int64)), 1)
    array([1, 2])
    """
    key, end, order = columns.key, columns.end, order_of(columns, ranks)
    kept = np.empty(len(key), dtype=np.int64)
    last = np.full(keys + 1, -1, dtype=np.int64)
    n = 0
    for i in range(len(key)):
        k = key[i]
        at = last[k]
        if at >= 0 and end[kept[at]] == end[i]:
            if later(order, i, kept[at]):
                kept[at] = i
        else:
            kept[n] = i
            last[k] = n
            n += 1
    return kept[:n]
