"""The per-key log of occurrences that are not used up: what a choice is made among."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.detector.contexts.history import History, Initiator
from engine.detector.contexts.items import Item, Streams
from engine.detector.contexts.values import Rank
from engine.detector.instances import EVERY_KEY, Bools, Instances, Int32, Moment, bare, concat
from engine.values import Int64


@dataclass
class Log:
    """One step's streams, what is carried before what arrives.

    `used` and `initiated` mark occurrences of a key, by an instance of that occurrence alone, or
    (no entry) an instant. `remembered` says which occurrences, once used up, may still turn up.
    """

    events: Sequence[Instances]
    counted: Sequence[Instances]
    looked: Sequence[Instances]
    used: Instances
    initiated: Instances
    remembered: Bools
    moment: Moment
    _touched: list[tuple[int, set[int], set[Initiator]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        parts = (*self.events, *self.counted, *self.looked, self.used, self.initiated)
        self._groups = [_Groups(part.key) for part in parts]

    def open(self, key: int) -> tuple[Streams, dict[int, Rank], set[int], set[Initiator]]:
        """What a key sees in this step, latest first; ranks; what it has used up; initiators."""
        ranks: dict[int, Rank] = {}
        groups = iter(self._groups)
        streams = Streams(
            [self._items(part, next(groups).of(key), ranks) for part in self.events],
            [self._items(part, next(groups).of(key), ranks) for part in self.counted],
            [_pairs(part, next(groups).of(key)) for part in self.looked],
        )
        used = {row for row in self._marked(self.used, next(groups).own(key))
                if isinstance(row, int)}  # fmt: skip
        return streams, ranks, used, self._marked(self.initiated, next(groups).own(key))

    def close(self, key: int, history: History) -> None:
        """Remember what the key has used up, and what has initiated."""
        self._touched.append((key, history.used, history.initiated))

    def left(self, oldest: int | None, passing: frozenset[int]) -> list[Instances]:
        """The streams of events and of what is counted without what is used up, what is older than
        `oldest` and event types that are of no use any more."""
        taken = {(key, row) for key, used, _ in self._touched for row in used}
        kept = []
        for number, part in enumerate((*self.events, *self.counted)):
            mark = np.ones(len(part), dtype=np.bool_)
            if oldest is not None:
                mark &= part.start >= oldest
            if number in passing:
                mark[:] = False
            if taken:
                owner = np.repeat(np.arange(len(part)), np.diff(part.offsets))
                pairs = zip(part.key[owner].tolist(), part.row.tolist(), strict=True)
                gone = np.array([pair in taken for pair in pairs], dtype=np.bool_)
                mark[owner[gone]] = False
            kept.append(part.where(mark))
        return kept

    def marks(self, kept: Sequence[Instances]) -> tuple[Instances, Instances]:
        """What is used up and what has initiated, of occurrences that may still turn up."""
        may = self.remembered.copy()
        for part in kept:
            may[part.row] = True
        keys = np.array([key for key, *_ in self._touched], dtype=np.int32)
        used = [(key, row) for key, rows, _ in self._touched for row in rows if may[row]]
        initiators = [(key, i) for key, _, found in self._touched for i in found]
        rows = [(key, i) for key, i in initiators if isinstance(i, int) and may[i]]
        instants = [(key, i[0]) for key, i in initiators if isinstance(i, tuple)]
        return (
            _joined(self.used, keys, self._single(used)),
            _joined(self.initiated, keys, self._single(rows), _instants(instants)),
        )

    def _single(self, marks: Sequence[tuple[int, int]]) -> Instances:
        key, row = _columns(marks)
        time = self.moment.time[row]
        roles = np.zeros(len(self.moment.time), dtype=np.int16)
        for part in (*self.events, *self.counted, self.used, self.initiated):
            roles[part.row] = part.role
        return Instances(key, time, time, np.arange(len(row) + 1), row, roles[row])

    def _items(self, part: Instances, index: Int64, ranks: dict[int, Rank]) -> list[Item]:
        items = []
        for i in index[::-1].tolist():
            a, b = part.offsets[i], part.offsets[i + 1]
            rows = part.row[a:b].tolist()
            for row in rows:
                ranks[row] = int(self.moment.time[row]), int(self.moment.rank[row]), row
            entries = tuple(dict.fromkeys(zip(part.role[a:b].tolist(), rows, strict=True)))
            items.append(Item(int(part.start[i]), int(part.end[i]), entries))
        return items

    def _marked(self, marks: Instances, index: Int64) -> set[Initiator]:
        found: set[Initiator] = set()
        for i in index.tolist():
            rows = marks.row[marks.offsets[i] : marks.offsets[i + 1]].tolist()
            found |= {rows[0] if rows else (int(marks.start[i]),)}
        return found


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
