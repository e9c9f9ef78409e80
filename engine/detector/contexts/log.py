"""The per-key log of occurrences that are not used up: what a choice is made among."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from engine.detector.contexts.history import History, Initiator
from engine.detector.contexts.limits import check_carried
from engine.detector.contexts.tree import Tree
from engine.detector.instances import EVERY_KEY, Carry, Instances, Moment, bare, concat
from engine.values import Int64


class Log:
    """One step's streams, what is carried before what arrives.

    `leaves` are the streams of occurrences, their items numbered through as in `pool`; `looked`
    those of intervals; `used` and `initiated` mark items of a key: by an instance with the same
    entries, or with none for an instant.
    """

    def __init__(
        self,
        leaves: Sequence[Instances],
        looked: Sequence[Instances],
        used: Instances,
        initiated: Instances,
    ) -> None:
        self.pool = concat(leaves)
        self._looked = looked
        self._base = np.cumsum([0, *(len(part) for part in leaves)])
        self._gone = np.zeros(len(self.pool), dtype=np.bool_)
        self._items = _Groups(self.pool.key)
        self._intervals = [_Groups(part.key) for part in looked]
        self._marks = [(part, _Groups(part.key)) for part in (used, initiated)]
        self._new_marks: list[list[Instances]] = [[], []]
        self._touched: list[int] = []
        marked = len(used) or len(initiated)
        self._named = {self._name(self.pool, i): i for i in range(len(self.pool))} if marked else {}

    def open(self, key: int, tree: Tree, moment: Moment, steps_max: int) -> History:
        """What a key sees in this step."""
        pool = self.pool
        mine = self._items.of(key)
        start, end = pool.start[mine].tolist(), pool.end[mine].tolist()
        intervals = dict(zip(mine.tolist(), zip(start, end, strict=True), strict=True))
        edges = np.searchsorted(mine, self._base).tolist()
        used, initiated = (self._marked(part.take(g.own(key))) for part, g in self._marks)
        return History(
            tree,
            intervals,
            {item: self._rank(item, moment) for item in intervals},
            [sorted(mine[a:b].tolist(), key=lambda i: intervals[i][1]) for a, b in pairwise(edges)],
            [
                _pairs(part, g.of(key))
                for part, g in zip(self._looked, self._intervals, strict=True)
            ],
            steps_max,
            {item for item in used if isinstance(item, int)},
            initiated,
        )

    def close(self, key: int, history: History) -> None:
        """Remember what the key has used up, and what has initiated."""
        self._touched.append(key)
        used = np.array(sorted(history.used), dtype=np.int64)
        own = self.pool.key[used] == key
        self._gone[used[own]] = True
        self._mark(0, key, used[~own].tolist())
        self._mark(1, key, history.initiated)

    def carry(self, passing: Collection[int], carried_max: int) -> Carry:
        """What outlives the step."""
        keep = ~self._gone
        for stream in passing:
            keep[self._base[stream] : self._base[stream + 1]] = False
        leaves = [
            self.pool.take(np.flatnonzero(keep[a:b]) + a) for a, b in pairwise(self._base.tolist())
        ]
        check_carried(leaves, carried_max)
        marks = [
            concat([part.where(~np.isin(part.key, self._touched)), *new]).by_end()
            for (part, _), new in zip(self._marks, self._new_marks, strict=True)
        ]
        return (*leaves, *self._looked, *marks)

    def _mark(self, which: int, key: int, marked: Iterable[Initiator]) -> None:
        items = np.array([i for i in marked if isinstance(i, int)], dtype=np.int64)
        found = self.pool.take(items[~self._gone[items]])
        self._new_marks[which].append(replace(found, key=np.full(len(found), key, np.int32)))
        instants = np.array([i[0] for i in marked if isinstance(i, tuple)], dtype=np.int64)
        key_of = np.full(len(instants), key, dtype=np.int32)
        self._new_marks[which].append(bare(key_of, instants, instants))

    def _marked(self, marks: Instances) -> set[Initiator]:
        """The items and instants that marks stand for; an item that is forgotten needs none."""
        found: set[Initiator] = set()
        for i in range(len(marks)):
            if marks.offsets[i] == marks.offsets[i + 1]:
                found.add((int(marks.start[i]),))
            elif (item := self._named.get(self._name(marks, i))) is not None:
                found.add(item)
        return found

    def _name(self, of: Instances, i: int) -> tuple[int, ...]:
        entries = slice(of.offsets[i], of.offsets[i + 1])
        return (*of.row[entries].tolist(), int(of.role[entries.start]))

    def _rank(self, item: int, moment: Moment) -> tuple[int, ...]:
        """S1: start, end, event type, parameters; equal rows as they stand."""
        pool = self.pool
        rows = pool.row[pool.offsets[item] : pool.offsets[item + 1]].tolist()
        ranks = [value for row in rows for value in (int(moment.rank[row]), row)]
        return (int(pool.start[item]), int(pool.end[item]), *ranks)


class _Groups:
    """The places of each key code."""

    def __init__(self, key: np.ndarray) -> None:
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
    return list(zip(part.start[index].tolist(), part.end[index].tolist(), strict=True))
