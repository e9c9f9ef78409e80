"""The exact search: D, the instances of an expression that end now, in some semiring of values.

Works on relations (start, end) -> value: all that an operator asks of its operands is their
intervals, so it is enough to keep one value for each (Carlson & Lisper's policy `rem` keeps one for
each end, which is right for `restricted` alone).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic

from engine.detector import calendar
from engine.detector.contexts import tree as t
from engine.detector.contexts.values import V, Values
from rules.errors import EngineError

Interval = tuple[int, int]
Relation = dict[Interval, V]


class Search(Generic[V]):
    """One search, at one instant for one key.

    `unused` holds for each stream of the tree the items that are not used up, `looked` the
    intervals that are looked at, none after `now`; `intervals` those of the items. Raises
    `EngineError('search-steps')` past `steps_max` unions of instances.
    """

    def __init__(
        self,
        values: Values[V],
        unused: Sequence[Sequence[int]],
        looked: Sequence[Sequence[Interval]],
        intervals: Mapping[int, Interval],
        now: int,
        steps_max: int,
    ) -> None:
        self._values = values
        self._unused = unused
        self._looked = looked
        self._intervals = intervals
        self._now = now
        self._steps_max = steps_max
        self._steps = 0
        self._known: dict[int, Relation[V]] = {}

    def ending(self, tree: t.Tree) -> dict[int, V]:
        """The value of the instances that end now, by start."""
        return {start: value for (start, _), value in self._of(tree, False).items()}

    def _of(self, tree: t.Tree, whole: bool) -> Relation[V]:
        """The instances up to now (`whole`), or that end now."""
        if whole and id(tree) in self._known:
            return self._known[id(tree)]
        rows: Mapping[type[t.Tree], Callable[[Any, bool], Relation[V]]] = {
            t.Leaf: self._leaf,
            t.Either: self._either,
            t.Conjunction: self._conjunction,
            t.Sequence: self._sequence,
            t.Minus: self._minus,
            t.Within: self._within,
        }
        found = rows[type(tree)](tree, whole)
        if whole:
            self._known[id(tree)] = found
        return found

    def _leaf(self, tree: t.Leaf, whole: bool) -> Relation[V]:
        found: Relation[V] = {}
        for item in self._unused[tree.stream]:
            interval = self._intervals[item]
            if whole or interval[1] == self._now:
                self._add(found, interval, self._values.one(tree.shift, item))
        return found

    def _either(self, tree: t.Either, whole: bool) -> Relation[V]:
        found: Relation[V] = {}
        for part in tree.operands:
            for interval, value in self._of(part, whole).items():
                self._add(found, interval, value)
        return found

    def _conjunction(self, tree: t.Conjunction, whole: bool) -> Relation[V]:
        """chosen[m]: the unions of one instance each of m of the operands so far."""
        chosen: list[Relation[V]] = [{} for _ in range(tree.count + 1)]
        for part in tree.operands:
            relation = self._of(part, True)
            for m in range(tree.count, 1, -1):
                for (a, b), left in chosen[m - 1].items():
                    for (c, d), right in relation.items():
                        self._join(chosen[m], (a, left), (c, right), max(b, d))
            for interval, value in relation.items():
                self._add(chosen[1], interval, value)
        found = chosen[tree.count]
        return found if whole else {i: v for i, v in found.items() if i[1] == self._now}

    def _sequence(self, tree: t.Sequence, whole: bool) -> Relation[V]:
        found: Relation[V] = {}
        then = self._of(tree.then, whole)
        if not then:
            return found
        for (start, end), left in self._of(tree.first, True).items():
            for (begin, until), right in then.items():
                if end < begin:
                    self._join(found, (start, left), (begin, right), until)
        return found

    def _minus(self, tree: t.Minus, whole: bool) -> Relation[V]:
        absent = self._looked[tree.absent]
        return {
            (start, end): value
            for (start, end), value in self._of(tree.part, whole).items()
            if not any(start <= begin and until <= end for begin, until in absent)
        }

    def _within(self, tree: t.Within, whole: bool) -> Relation[V]:
        return {
            (start, end): value
            for (start, end), value in self._of(tree.part, whole).items()
            if end <= calendar.add(start, tree.duration, tree.zone)
        }

    def _add(self, found: Relation[V], interval: Interval, value: V) -> None:
        known = found.get(interval)
        found[interval] = value if known is None else self._values.add(known, value)

    def _join(
        self, found: Relation[V], left: tuple[int, V], right: tuple[int, V], end: int
    ) -> None:
        self._steps += 1
        if self._steps > self._steps_max:
            raise EngineError(
                "search-steps",
                f"choosing among the instances of one key at {self._now} us takes more than"
                f" {self._steps_max} steps",
                "bound the expression by `within`, or raise search_steps_max",
            )
        value = self._values.join(*left, *right)
        self._add(found, (min(left[0], right[0]), end), value)
