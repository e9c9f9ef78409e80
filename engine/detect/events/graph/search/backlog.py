"""The occurrences of each key that are not consumed: what a choice is made among."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.search.comparison import Rank
from tidegate.engine.detect.events.graph.search.history import History, Initiator
from tidegate.engine.detect.events.graph.search.items import Item, Streams
from tidegate.engine.detect.events.kernels.columns import LAST, NEVER
from tidegate.engine.detect.events.occurrences.instances import (
    EVERY_KEY,
    Bools,
    Instances,
    Int32,
    Moment,
    bare,
    concat,
)

NO_KEY = np.empty(0, dtype=np.int32)


@dataclass
class Backlog:
    """One step's streams: what is carried, then what arrives.

    `used` and `initiated` mark what a key has consumed and what has initiated: an instance of one
    occurrence, or without entries an instant. `remembered` marks the occurrences that may still be
    in something given, while they are no older than pending[key].
    """

    events: Sequence[Instances]
    given: Sequence[Instances]
    looked: Sequence[Instances]
    used: Instances
    initiated: Instances
    remembered: Bools
    pending: Int64
    moment: Moment
    touched: dict[int, History] = field(default_factory=dict)
    """By key: what has been chosen among in this step."""

    def __post_init__(self) -> None:
        parts = (*self.events, *self.given, *self.looked, self.used, self.initiated)
        self._groups = [_Groups(part.key) for part in parts]
        self._places = self.moment.numbering.places()

    def open(self, key: int) -> tuple[Streams, dict[int, Rank], set[int], set[Initiator]]:
        """What a key sees in this step, latest first; ranks; what it has consumed; initiators."""
        ranks: dict[int, Rank] = {}
        groups = iter(self._groups)
        streams = Streams(
            [self._items(part, next(groups).of(key), ranks) for part in self.events],
            [self._items(part, next(groups).of(key), ranks) for part in self.given],
            [_pairs(part, next(groups).of(key)) for part in self.looked],
        )
        used = {row for row in self._marked(self.used, next(groups).own(key), ranks)
                if isinstance(row, int)}  # fmt: skip
        return streams, ranks, used, self._marked(self.initiated, next(groups).own(key), ranks)

    def keys(self, *, since: int = NEVER, before: int = LAST) -> Int32:
        """The codes of the keys that see anything that starts from one instant on and before
        another."""
        parts = [part for part in (*self.events, *self.given) if len(part)]
        seen = [part.key[(part.start >= since) & (part.start < before)] for part in parts]
        found = np.unique(np.concatenate([NO_KEY, *seen]))
        if EVERY_KEY in found:
            found = np.unique(np.concatenate([p.key for p in parts]))
        return found

    def left(self, oldest: Int64, passing: frozenset[int]) -> list[Instances]:
        """The streams of events and of what is given, without what is consumed, what is older than
        oldest[key], and the streams `passing`."""
        kept = []
        for number, part in enumerate((*self.events, *self.given)):
            mark = part.start >= oldest[part.key]
            if number in passing:
                mark[:] = False
            owner = np.repeat(np.arange(len(part)), np.diff(part.offsets))
            for e in np.flatnonzero(np.isin(part.key[owner], [*self.touched])).tolist():
                i = owner[e]
                mark[i] &= not self.touched[int(part.key[i])].gone(int(part.row[e]))
            kept.append(part.where(mark))
        return kept

    def marks(self, kept: Sequence[Instances]) -> tuple[Instances, Instances]:
        """What is consumed and what has initiated, of what may still come again."""
        known = np.zeros(len(self.moment.time), dtype=np.bool_)
        for part in kept:
            known[part.row] = True
        oldest = min((int(part.start.min()) for part in kept if len(part)), default=LAST)

        def may(key: int, row: int) -> bool:
            again = self.remembered[row] and self.moment.time[row] >= self.pending[key]
            return bool(known[row] or again)

        keys = np.array([*self.touched], dtype=np.int32)
        used = [(key, row) for key, h in self.touched.items() for row in h.used if may(key, row)]
        initiators = [(key, i) for key, h in self.touched.items() for i in h.initiated]
        rows = [(key, i) for key, i in initiators if isinstance(i, int) and may(key, i)]
        instants = [(key, i[0]) for key, i in initiators if isinstance(i, tuple) and i[0] >= oldest]
        return (
            _joined(self.used, keys, self._single(used)),
            _joined(self.initiated, keys, self._single(rows), _instants(instants)),
        )

    def _single(self, marks: Sequence[tuple[int, int]]) -> Instances:
        key, row = _columns(marks)
        time = self.moment.time[row]
        roles = np.zeros(len(self.moment.time), dtype=np.int16)
        for part in (*self.events, *self.given, self.used, self.initiated):
            roles[part.row] = part.role
        return Instances(key, time, time, np.arange(len(row) + 1), row, roles[row])

    def _items(self, part: Instances, index: Int64, ranks: dict[int, Rank]) -> list[Item]:
        own = part.take(index[::-1])
        self._rank(own.row, ranks)
        entries = list(zip(own.role.tolist(), own.row.tolist(), strict=True))
        spans = zip(
            own.start.tolist(), own.end.tolist(), pairwise(own.offsets.tolist()), strict=True
        )
        return [
            Item(start, end, tuple(dict.fromkeys(entries[a:b]))) for start, end, (a, b) in spans
        ]

    def _rank(self, row: Int64, ranks: dict[int, Rank]) -> None:
        start, time, rank = self.moment.start[row], self.moment.time[row], self.moment.rank[row]
        columns = (start, time, rank, row, self._places[row])
        ranks.update(
            zip(row.tolist(), zip(*(c.tolist() for c in columns), strict=True), strict=True)
        )

    def _marked(self, marks: Instances, index: Int64, ranks: dict[int, Rank]) -> set[Initiator]:
        own = marks.take(index)
        self._rank(own.row, ranks)
        bare = own.offsets[1:] == own.offsets[:-1]
        return {*own.row.tolist(), *((instant,) for instant in own.start[bare].tolist())}


class _Groups:
    """The places of each key code."""

    def __init__(self, key: Int32) -> None:
        self._order = np.argsort(key, kind="stable")
        self._sorted = key[self._order]

    def own(self, key: int) -> Int64:
        a, b = np.searchsorted(self._sorted, [key, key + 1])
        return self._order[a:b]

    def of(self, key: int) -> Int64:
        """The places of the key and of every key, in order."""
        if key == EVERY_KEY:
            return self.own(key)
        return np.sort(np.concatenate([self.own(EVERY_KEY), self.own(key)]))


def _pairs(part: Instances, index: Int64) -> list[tuple[int, int]]:
    index = index[::-1]
    return list(zip(part.start[index].tolist(), part.end[index].tolist(), strict=True))


def _columns(marks: Sequence[tuple[int, int]]) -> tuple[Int32, Int64]:
    table = np.array(marks, dtype=np.int64).reshape(-1, 2)
    return table[:, 0].astype(np.int32), table[:, 1]


def _instants(marks: Sequence[tuple[int, int]]) -> Instances:
    key, instant = _columns(marks)
    return bare(key, instant, instant)


def _joined(old: Instances, touched: Int32, *new: Instances) -> Instances:
    return concat([old.where(~np.isin(old.key, touched)), *new]).by_end()
