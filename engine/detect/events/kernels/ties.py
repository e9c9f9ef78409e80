"""Which of simultaneous occurrences of one event type and key counts."""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.core.columns.numba_cache import njit


@njit
def groups(key, time, keys):
    """For each occurrence the number of its group, those of one key and time; and how many groups
    there are. time is non-decreasing. State:

        last[key]   the key's latest occurrence, -1 = none
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
    """The members of each group with its greatest value. The place of one of them is written to
    chosen[group]. Where there are several, all are returned, as group and place: another value has
    to decide among them. State:

        best[group]    the greatest value
        count[group]   how many members have it

    Example: group 0 with the values 5, 7 is decided: 7; group 1 with 3, 3 is returned.
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
