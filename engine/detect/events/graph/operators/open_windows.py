"""What `not`, `A`, `A*` and `P*` share: the openers that a later terminator may find."""

from __future__ import annotations

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.kernels import joins, openers, ties
from tidegate.engine.detect.events.kernels.columns import LAST
from tidegate.engine.detect.events.kernels.instance_order import sort_by_rank
from tidegate.engine.detect.events.occurrences.instances import (
    EVERY_KEY,
    Bools,
    Instances,
    Int32,
    Moment,
    Pending,
)


def last_before(first: Instances, key: Int32, time: Int64, keys: int) -> tuple[Int64, Int64]:
    """For each (key, time) the last instance of `first` of that key that ended before, -1 = none;
    and the last instance of each key. The queries are in any order."""
    if (time[1:] >= time[:-1]).all():
        return joins.last_before(first.key, first.end, key, time, keys)  # type: ignore[no-any-return]
    order = np.argsort(time, kind="stable")
    found = np.empty(len(time), dtype=np.int64)
    found[order], last = joins.last_before(first.key, first.end, key[order], time[order], keys)
    return found, last


def still_open(
    first: Instances, chain: Int64, low: Int64, pending: Pending, keys: int, *, same: bool = False
) -> Bools:
    """Marks the openers that a later terminator may find: the last opener of each key, the last one
    before each pending start, and the greater ones on the chains of these, unless they ended before
    `low` of their key. `same`: an opener may end at the pending start."""
    last = _last(first, pending, keys, same=same)
    mark: Bools = openers.marked(last, chain, first.key, first.end, low)
    return mark


def greatest_open(
    first: Instances, chain: Int64, low: Int64, pending: Pending, taking: Pending, keys: int
) -> Bools:
    """Marks as `still_open` does, but of each chain only the greatest opener not yet cancelled
    (`low`), and the greatest that each cancelling event still to come would leave (`taking`)."""
    last = _last(first, pending, keys)
    last = last[last >= 0]
    key, start = _of_each(taking, first)
    order = np.argsort(key, kind="stable")
    begin = np.searchsorted(key[order], first.key[last])
    count = np.searchsorted(key[order], first.key[last], side="right") - begin
    at = np.concatenate([last, np.repeat(last, count)])
    pick = np.arange(count.sum()) + np.repeat(begin - np.cumsum(count) + count, count)
    since = np.concatenate([low[first.key[last]], start[order][pick]])
    since = np.maximum(since, low[first.key[at]])
    found = openers.climb(at, chain, first.end, since)
    mark = np.zeros(len(first), dtype=np.bool_)
    mark[found[found >= 0]] = True
    return mark


def _last(first: Instances, pending: Pending, keys: int, *, same: bool = False) -> Int64:
    """The last opener of each key, and before each pending start; -1 where there is none."""
    key, start = _of_each(pending, first)
    found, last = last_before(first, key, start + same, keys)
    return np.concatenate([last, found])


def _of_each(pending: Pending, first: Instances) -> tuple[Int32, Int64]:
    """The pending starts, with those of every key repeated for each key that has an opener."""
    general = pending.start[pending.key == EVERY_KEY]
    present = np.unique(first.key)
    key = np.concatenate([pending.key, np.repeat(present, len(general))])
    return key, np.concatenate([pending.start, np.tile(general, len(present))])


def since_first(kept: Instances, inside: Instances, keys: int) -> Bools:
    """Marks the instances that start no earlier than the first open window of their key."""
    earliest = np.full(keys + 1, LAST)
    np.minimum.at(earliest, kept.key, kept.end)
    return np.asarray(inside.start >= earliest[inside.key])


def in_closing_order(closers: Instances, moment: Moment) -> Instances:
    """Terminators in order of end. If several of one key end together, the lowest in rank comes
    first (S4): it closes the windows, and those after it find them closed."""
    group, count = ties.groups(closers.key, closers.end, moment.keys)
    if count == len(closers):
        return closers
    tied = np.flatnonzero(np.bincount(group)[group] > 1)
    group = group[tied]
    points = len(closers.row) == len(closers)  # sorted by rank here, the kernel has little to do
    inner = (closers.row[tied], moment.rank[closers.row[tied]]) if points else ()
    order = tied[np.lexsort((*inner, group))]
    sort_by_rank(order, np.sort(group), closers.columns, moment.ranks)
    index = np.arange(len(closers))
    index[tied[np.argsort(group, kind="stable")]] = order
    return closers.take(index)
