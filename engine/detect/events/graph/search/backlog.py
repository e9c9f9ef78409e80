"""The occurrences of all keys that are not consumed: what is carried, then what arrives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.search.asking import Asking
from tidegate.engine.detect.events.graph.search.comparison import Order, Ticks
from tidegate.engine.detect.events.graph.search.history import History, Item, Sought
from tidegate.engine.detect.events.kernels.columns import LAST, NEVER
from tidegate.engine.detect.events.occurrences.instances import (
    EVERY_KEY,
    Bools,
    Instances,
    Int16,
    Int32,
    Moment,
    bare,
    concat,
)

NO_KEY = np.empty(0, dtype=np.int32)


@dataclass
class Backlog:
    """One step's streams, what is carried before what arrives. A key's part of it is a `History`.

    `streams` have occurrences, `looked` are only looked at. `marks` are those of all keys: each an
    instance of one occurrence, or without entries an instant; then, if the tree has points, those
    that have initiated, each with the occurrences that it holds. Occurrences in the `remembered`
    roles may still be in something given, while they are no older than pending[key]. first[role]:
    the first role of the same event.
    """

    sought: Sought
    streams: Sequence[Instances]
    looked: Sequence[Instances]
    marks: Sequence[Instances]
    remembered: frozenset[int]
    first: Sequence[int]
    pending: Int64
    moment: Moment
    ticks: Ticks = field(default_factory=Ticks)
    touched: dict[int, History] = field(default_factory=dict)
    """By key: what has been chosen among in this step."""

    def __post_init__(self) -> None:
        parts = (*self.streams, *self.looked, *self.marks)
        self._whole = concat(parts)
        self._part = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        self._by_key = np.argsort(self._whole.key, kind="stable")
        self._keys = self._whole.key[self._by_key]
        self._events = self.moment.numbering.places()
        self._asking = Asking(self.moment, np.unique(self._whole.row))

    def history(self, key: int) -> History:
        """What a key sees in this step. Nothing of it has happened yet."""
        count = len(self.streams) + len(self.looked)
        index = self._of(key)
        if key != EVERY_KEY:
            shared = self._of(EVERY_KEY)  # but no marks of the key of broadcasts alone
            index = np.sort(np.concatenate([shared[self._part[shared] < count], index]))
        own = self._whole.take(index)
        items = _items(own)
        bounds = np.searchsorted(self._part[index], np.arange(count + 3)).tolist()
        *coming, marks, points = (items[a:b] for a, b in pairwise(bounds))
        return History(
            self.sought,
            len(self.streams),
            [stream[::-1] for stream in coming],
            Order(own.row, self._events[own.row], self.moment, self.sought.silent, self.ticks),
            {
                *(item.entries[0][1] if item.entries else (item.start,) for item in marks),
                *((p.start, frozenset(row for _, row in p.entries)) for p in points),
            },
            self._asking,
        )

    def _of(self, key: int) -> Int64:
        """The places of a key's own items in the whole."""
        first, until = np.searchsorted(self._keys, [key, key + 1])
        return self._by_key[first:until]

    def keys(self, *, since: int = NEVER, before: int = LAST) -> Int32:
        """The codes of the keys that see anything that starts from one instant on and before
        another."""
        parts = [part for part in self.streams if len(part)]
        seen = [part.key[(part.start >= since) & (part.start < before)] for part in parts]
        found = np.unique(np.concatenate([NO_KEY, *seen]))
        if EVERY_KEY in found:
            found = np.unique(np.concatenate([part.key for part in parts]))
        return found

    def left(self, oldest: Int64, passing: frozenset[int]) -> list[Instances]:
        """The streams without what is consumed, what is older than oldest[key], and the streams
        `passing`."""
        kept = []
        consuming = [key for key, history in self.touched.items() if history.marks]
        for number, part in enumerate(self.streams):
            mark = part.start >= oldest[part.key]
            if number in passing:
                mark[:] = False
            owner = np.repeat(np.arange(len(part)), np.diff(part.offsets))
            for e in np.flatnonzero(np.isin(part.key[owner], consuming)).tolist():
                i = owner[e]
                mark[i] &= not self.touched[int(part.key[i])].gone(int(part.row[e]))
            kept.append(part.where(mark))
        return kept

    def marked(self, kept: Sequence[Instances]) -> list[Instances]:
        """The marks of what may still come again, and does not start before all that is kept."""
        roles = np.zeros(len(self.moment.time), dtype=np.int16)
        roles[self._whole.row] = np.array(self.first, dtype=np.int16)[self._whole.role]
        oldest = min((int(part.start.min()) for part in kept if len(part)), default=LAST)
        others = [part.where(~np.isin(part.key, [*self.touched])) for part in self.marks]
        marks = [(key, mark) for key, history in self.touched.items() for mark in history.marks]
        key, row = _columns((key, mark) for key, mark in marks if isinstance(mark, int))
        time = self.moment.time[row]
        rows = Instances(key, time, time, np.arange(len(row) + 1), row, roles[row])
        held = [(key, *mark) for key, mark in marks if isinstance(mark, tuple)]
        key, instant = _columns((key, at) for key, at, *holding in held if not holding)
        whole = concat([others[0], rows, bare(key, instant, instant)])
        young = whole.start >= oldest
        of_row = np.diff(whole.offsets) > 0
        young[of_row] = self._may_come(whole.key[of_row], whole.row, roles[whole.row], kept)
        found = [whole.where(young).by_end()]
        if len(self.marks) > 1:
            points = concat([others[1], _points([mark for mark in held if mark[2:]], roles)])
            found.append(points.where(points.start >= oldest).by_end())
        return found

    def _may_come(self, key: Int32, row: Int64, role: Int16, kept: Sequence[Instances]) -> Bools:
        """Whether a key may see an occurrence again: it is kept for the key or for every key, or
        may be in something given."""
        later = np.isin(role, [*self.remembered]) & (self.moment.time[row] >= self.pending[key])
        if later.all():
            return later
        of_key = np.concatenate([np.repeat(p.key, np.diff(p.offsets)) for p in kept])
        rows = np.concatenate([part.row for part in kept])
        size = len(self.moment.time)
        mine = np.isin(key.astype(np.int64) * size + row, of_key.astype(np.int64) * size + rows)
        return later | mine | np.isin(row, rows[of_key == EVERY_KEY])


def _points(marks: Sequence[tuple[int, int, frozenset[int]]], roles: Int16) -> Instances:
    """Points that have initiated: key, instant, and the occurrences that each holds. roles[row]:
    the first that the row can fill."""
    key, instant = _columns((key, at) for key, at, _ in marks)
    rows = [sorted(held) for _, _, held in marks]
    offsets = np.cumsum([0, *map(len, rows)])
    row = np.array([r for each in rows for r in each], dtype=np.int64)
    return Instances(key, instant, instant, offsets, row, roles[row])


def _columns(pairs: Iterable[tuple[int, int]]) -> tuple[Int32, Int64]:
    key, value = np.array([*pairs], dtype=np.int64).reshape(-1, 2).T
    return key.astype(np.int32), value


def _items(part: Instances) -> list[Item]:
    """Instances with each of their entries once."""
    entries = list(zip(part.role.tolist(), part.row.tolist(), strict=True))
    bounds = pairwise(part.offsets.tolist())
    return [
        Item(start, end, tuple(dict.fromkeys(entries[a:b])))
        for start, end, (a, b) in zip(part.start.tolist(), part.end.tolist(), bounds, strict=True)
    ]
