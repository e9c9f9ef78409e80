"""The compiled loops all operators share. Each walks streams once, in time order, over dense key
codes: no sort by key, no object per event.

Names: key, start, end, offsets, row are the columns of `Instances`; time, rank order the step's
occurrences (operators give their starts as time: S1); `keys` the largest key code. Code 0 stands
for every key (broadcasts, S7): what a key sees is its own instances and those of code 0.
"""
# mypy: allow-untyped-decorators, allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from tidegate.engine.compiled import njit

NEVER = -(2**63)
"""Before all instants."""
TICK_RANK = 2**62


@njit
def later(start, offsets, row, time, rank, i, j):
    """Is instance i greater than j in the order of S1? Later start; then times, oldest first, then
    ranks, oldest first: at the first difference the later wins, a list that has ended wins."""
    if start[i] != start[j]:
        return start[i] > start[j]
    return later_list(
        row[offsets[i] : offsets[i + 1]], row[offsets[j] : offsets[j + 1]], time, rank
    )


@njit
def later_list(left, right, time, rank):
    """The order of S1 for two lists of occurrences, each in order of (time, rank)."""
    i, j = skip_ticks(left, 0, rank), skip_ticks(right, 0, rank)
    while i < len(left) and j < len(right):
        if time[left[i]] != time[right[j]]:
            return time[left[i]] > time[right[j]]
        i, j = skip_ticks(left, i + 1, rank), skip_ticks(right, j + 1, rank)
    if i < len(left) or j < len(right):
        return i == len(left)
    ordered = order_of_ranks(left, right, time, rank)
    if ordered == 0:
        ordered = order_of_ticks(left, right, time, rank)
    if ordered != 0:
        return ordered > 0
    # equal rows are two occurrences (S5): in one order everywhere, as `every` and `[i]` count them
    for p in range(len(left)):
        if left[p] != right[p]:
            return left[p] > right[p]
    return False


@njit
def order_of_ranks(left, right, time, rank):
    """Compares two lists with equal times by their ranks, oldest first: 1 if the left is greater,
    -1 if the right is, 0 if they are alike.

    The first difference of the two, in the order of ranks, is the least occurrence that only one of
    them has: it makes that one the smaller. Ranks that order all occurrences are negative: only
    then may that order be another than that of the lists.
    """
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
            earlier = after(right[j], left[i], time, rank)
        only = rank[left[i]] if earlier else rank[right[j]]
        if found == 0 or only < least:
            least, found = only, -1 if earlier else 1
        if earlier:
            i = skip_ticks(left, i + 1, rank)
        else:
            j = skip_ticks(right, j + 1, rank)
    return found


@njit
def order_of_ticks(left, right, time, rank):
    """Compares two lists by the instants of their ticks, as S1 does those of occurrences, for want
    of anything else: 1, -1 or 0."""
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
    """The first place from p on that is no tick: ticks are no occurrences (S6)."""
    while p < len(rows) and rank[rows[p]] == TICK_RANK:
        p += 1
    return p


@njit
def greatest_per_end(key, start, end, offsets, row, time, rank, keys):
    """For each (key, end) the greatest instance (policy `rem` of Carlson & Lisper)."""
    kept = np.empty(len(key), dtype=np.int64)
    last = np.full(keys + 1, -1, dtype=np.int64)
    n = 0
    for i in range(len(key)):
        k = key[i]
        at = last[k]
        if at >= 0 and end[kept[at]] == end[i]:
            if later(start, offsets, row, time, rank, i, kept[at]):
                kept[at] = i
        else:
            kept[n] = i
            last[k] = n
            n += 1
    return kept[:n]


@njit
def take_entries(offsets, row, role, index):
    """The entries of the instances at `index`: offsets, row, role."""
    n = len(index)
    out = np.empty(n + 1, dtype=np.int64)
    out[0] = 0
    for i in range(n):
        out[i + 1] = out[i] + offsets[index[i] + 1] - offsets[index[i]]
    out_row = np.empty(out[n], dtype=np.int64)
    out_role = np.empty(out[n], dtype=np.int16)
    for i in range(n):
        e = offsets[index[i]]
        for o in range(out[i], out[i + 1]):
            out_row[o] = row[e]
            out_role[o] = role[e]
            e += 1
    return out, out_row, out_role


@njit
def put(offsets, row, role, at, source, out, out_row, out_role):
    """Write the entries of the instances `source` to the places `at`, which ascend. Places and
    sources are the same runs of instances, each in another order."""
    for p in range(len(at)):
        o = out[at[p]]
        for e in range(offsets[source[p]], offsets[source[p] + 1]):
            out_row[o] = row[e]
            out_role[o] = role[e]
            o += 1
        out[at[p] + 1] = o


@njit
def repeats(offsets, row):
    """Has an instance an occurrence twice, one after the other?"""
    for i in range(len(offsets) - 1):
        for e in range(offsets[i] + 1, offsets[i + 1]):
            if row[e] == row[e - 1]:
                return True
    return False


@njit
def ticks_among(offsets, row, time, rank):
    """Is a tick simultaneous with another entry of its instance?"""
    for i in range(len(offsets) - 1):
        for e in range(offsets[i] + 1, offsets[i + 1]):
            if rank[row[e]] == TICK_RANK and time[row[e]] == time[row[e - 1]]:
                return True
    return False


@njit
def as_of(key, start, end, offsets, row, time, rank, query_key, query_time, query_end, span, keys):
    """For each query the greatest instance with end < query_time, if it starts at query_end - span
    or later: left, query, key, best.

    query_time is non-decreasing. A query of code 0 is asked for every key: it finds the greatest of
    code 0, and besides, for each key that has a greater one of its own, that. `best` is
    the greatest of all for each code (-1 = none).
    """
    best = np.full(keys + 1, -1, dtype=np.int32)
    own = np.empty(keys, dtype=np.int32)
    owners = 0
    room = len(query_key)
    left = np.empty(room, dtype=np.int64)
    query = np.empty(room, dtype=np.int64)
    out_key = np.empty(room, dtype=np.int32)
    n = 0
    i = 0
    for q in range(len(query_key) + 1):
        until_end = q == len(query_key)
        while i < len(end) and (until_end or end[i] < query_time[q]):
            k = key[i]
            j = best[k]
            if j < 0:
                best[k] = i
                if k > 0:
                    own[owners] = k
                    owners += 1
            elif start[i] > start[j] or later(start, offsets, row, time, rank, i, j):
                best[k] = i
            i += 1
        if until_end:
            break
        k = query_key[q]
        since = query_end[q] - span
        every = best[0]
        found = best[k]
        if every >= 0 and (found < 0 or later(start, offsets, row, time, rank, every, found)):
            found = every
        left[n] = found
        query[n] = q
        out_key[n] = k
        n += found >= 0 and start[found] >= since
        if k > 0:
            continue
        if n + owners + len(query_key) - q > room:
            room = 2 * room + owners
            left = grow(left, room)
            query = grow(query, room)
            out_key = grow(out_key, room)
        for o in range(owners):
            found = best[own[o]]
            if start[found] >= since and (
                every < 0 or later(start, offsets, row, time, rank, found, every)
            ):
                left[n] = found
                query[n] = q
                out_key[n] = own[o]
                n += 1
    return left[:n], query[:n], out_key[:n], best


@njit
def grow(array, room):
    grown = np.empty((room, *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown


@njit
def join_entries(a_offsets, a_row, a_role, b_offsets, b_row, b_role, shift, left, right):
    """Entries of the unions a[left] u b[right] where every occurrence of a is before those of b;
    the roles of b are moved up by `shift`."""
    n = len(left)
    out = np.empty(n + 1, dtype=np.int64)
    out[0] = 0
    for i in range(n):
        size = a_offsets[left[i] + 1] - a_offsets[left[i]]
        out[i + 1] = out[i] + size + b_offsets[right[i] + 1] - b_offsets[right[i]]
    out_row = np.empty(out[n], dtype=np.int64)
    out_role = np.empty(out[n], dtype=np.int16)
    for i in range(n):
        o = out[i]
        for e in range(a_offsets[left[i]], a_offsets[left[i] + 1]):
            out_row[o] = a_row[e]
            out_role[o] = a_role[e]
            o += 1
        for e in range(b_offsets[right[i]], b_offsets[right[i] + 1]):
            out_row[o] = b_row[e]
            out_role[o] = b_role[e] + shift
            o += 1
    return out, out_row, out_role


@njit
def without(a_key, a_start, a_end, b_key, b_start, b_end, keys):
    """Marks each a with no b wholly inside it; and the latest start of the b's, by key code."""
    latest = np.full(keys + 1, NEVER, dtype=np.int64)
    mark = np.empty(len(a_key), dtype=np.bool_)
    j = 0
    for i in range(len(a_key)):
        while j < len(b_key) and b_end[j] <= a_end[i]:
            latest[b_key[j]] = max(latest[b_key[j]], b_start[j])
            j += 1
        mark[i] = a_start[i] > max(latest[a_key[i]], latest[0])
    while j < len(b_key):
        latest[b_key[j]] = max(latest[b_key[j]], b_start[j])
        j += 1
    return mark, latest


@njit
def after(left, right, time, rank):
    """Does occurrence `left` come after `right` in an instance's list of entries?"""
    if time[left] != time[right]:
        return time[left] > time[right]
    if rank[left] != rank[right]:
        return rank[left] > rank[right]
    return left > right


@njit
def insert(out_row, out_role, base, n, row, role, time, rank):
    """Insert an entry into the first n from `base` on, in order of (time, rank, row, role), unless
    it is there; returns how many there are then."""
    place = base + n
    while place > base:
        before = out_row[place - 1]
        if before == row:
            if out_role[place - 1] == role:
                return n
            if out_role[place - 1] < role:
                break
        elif not after(before, row, time, rank):
            break
        place -= 1
    for o in range(base + n, place, -1):
        out_row[o] = out_row[o - 1]
        out_role[o] = out_role[o - 1]
    out_row[place] = row
    out_role[place] = role
    return n + 1


@njit
def unite_points(members, start, row, role, time, rank):
    """As `unite` for points, no two of which are the same: start, row, role."""
    n, count = members.shape
    out_start = np.empty(n, dtype=np.int64)
    out_row = np.empty(n * count, dtype=np.int64)
    out_role = np.empty(n * count, dtype=np.int16)
    o = 0
    for i in range(n):
        first, latest, ordered = start[members[i, 0]], NEVER, True
        for p in range(count):
            m = members[i, p]
            out_row[o] = row[m]
            out_role[o] = role[m]
            ordered &= start[m] > latest
            first, latest = min(first, start[m]), start[m]
            o += 1
        out_start[i] = first
        if not ordered:
            for p in range(count):
                m = members[i, p]
                insert(out_row, out_role, o - count, p, row[m], role[m], time, rank)
    return out_start, out_row, out_role


@njit
def unite(members, start, end, offsets, row, role, time, rank):
    """The unions of the instances members[n, m]: start, offsets, row, role. An occurrence that
    several of them hold in one role counts once. Fastest where members follow one another."""
    n, count = members.shape
    room = np.int64(0)
    for i in range(n):
        for p in range(count):
            room += offsets[members[i, p] + 1] - offsets[members[i, p]]
    out_start = np.empty(n, dtype=np.int64)
    out = np.empty(n + 1, dtype=np.int64)
    out_row = np.empty(room, dtype=np.int64)
    out_role = np.empty(room, dtype=np.int16)
    out[0] = 0
    o = 0
    for i in range(n):
        first, latest = start[members[i, 0]], NEVER
        for p in range(count):
            m = members[i, p]
            if start[m] > latest:
                for e in range(offsets[m], offsets[m + 1]):
                    out_row[o] = row[e]
                    out_role[o] = role[e]
                    o += 1
            else:
                for e in range(offsets[m], offsets[m + 1]):
                    size = o - out[i]
                    o = out[i] + insert(
                        out_row, out_role, out[i], size, row[e], role[e], time, rank
                    )
            first, latest = min(first, start[m]), max(latest, end[m])
        out_start[i] = first
        out[i + 1] = o
    return out_start, out, out_row[:o], out_role[:o]
