"""Which of simultaneous occurrences of one event type and key counts."""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.core.columns.numba_cache import njit


@njit
def groups(key, time, keys):
    """Numbers the groups of occurrences with equal key and time: group[i], and how many there are.
    time is non-decreasing. State:

        last[key]   the key's latest occurrence, -1 = none

    >>> groups(np.array([1, 2, 1, 1]), np.array([10, 10, 10, 20]), 2)
    (array([0, 1, 0, 2]), 3)
    """
    group = np.empty(len(key), dtype=np.int64)
    last = np.full(keys + 1, -1, dtype=np.int64)
    count = 0
    for i in range(len(key)):
        j = last[key[i]]
        if j >= 0 and time[j] == time[i]:
            group[i] = group[j]
        else:
            group[i] = count
            count += 1
        last[key[i]] = i
    return group, count


@njit
def contest(group, place, value, chosen):
    """Finds the members of each group with the group's greatest value. Writes the place of the last
    of them to chosen[group]. Returns group and place of all members that share the greatest value:
    a further value decides among those. State:

        best[group]    the greatest value
        count[group]   how many members have it

    Group 0 has the values 5 and 7, and is decided. Group 1 has 3 twice, and is returned:

    >>> chosen = np.full(2, -1)
    >>> contest(np.array([0, 0, 1, 1]), np.arange(4), np.array([5, 7, 3, 3]), chosen)
    (array([1, 1]), array([2, 3]))
    >>> chosen
    array([1, 3])
    """
    best = np.empty(len(chosen), dtype=np.int64)
    count = np.zeros(len(chosen), dtype=np.int64)
    for i in range(len(group)):
        g = group[i]
        if count[g] == 0 or value[i] > best[g]:
            best[g] = value[i]
            count[g] = 1
            chosen[g] = place[i]
        elif value[i] == best[g]:
            count[g] += 1
            chosen[g] = place[i]
    left = 0
    for i in range(len(group)):
        left += count[group[i]] > 1 and value[i] == best[group[i]]
    out_group = np.empty(left, dtype=np.int64)
    out_place = np.empty(left, dtype=np.int64)
    n = 0
    for i in range(len(group)):
        if count[group[i]] > 1 and value[i] == best[group[i]]:
            out_group[n] = group[i]
            out_place[n] = place[i]
            n += 1
    return out_group, out_place
