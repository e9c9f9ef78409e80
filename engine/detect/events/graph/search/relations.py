"""The exact search: D, the instances of an expression that end now, in some semiring of values.

It works on relations (start, end) -> value. Operators ask their operands only for intervals, so one
value for each interval is enough. (Carlson & Lisper's policy `rem` keeps one instance for each end,
which is enough for `restricted` only.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Generic

import numpy as np

from tidegate.engine.detect.events.graph import calendar
from tidegate.engine.detect.events.graph.search.comparison import Entries
from tidegate.engine.detect.events.graph.search.history import History, Item
from tidegate.engine.detect.events.graph.search.interval_choice import (
    All,
    Choosing,
    Interval,
    V,
    Values,
)
from tidegate.engine.detect.events.graph.search.sifted import Sifted
from tidegate.engine.detect.events.graph.search.streams import (
    Given,
    Leaf,
    Looked,
    Point,
    Ticks,
    is_plain,
    plain_leaves,
)
from tidegate.engine.detect.events.graph.search_limits import LimitError
from tidegate.rules.expressions import nodes as x

Relation = dict[Interval, V]
Closed = tuple[Interval, int, Entries]
"""A window: of its opener the interval; when it closes, and the entries of what closes it."""


def ending(history: History, values: Values[V]) -> dict[int, V]:
    """D: the value of the instances that end now and hold nothing that is consumed, by start."""
    if not history.may_end():
        return {}
    found = Search(history, values).of(history.sought.tree, whole=False)
    return {start: value for (start, _), value in found.items()}


class Search(Generic[V]):
    """A search for one key at one instant, among what is not consumed; nothing of that ends later.

    Raises `LimitError('search-steps')` past `steps_max` unions of instances.
    """

    def __init__(self, history: History, values: Values[V]) -> None:
        self._history = history
        self._values = values
        self._order = history.order
        self._now = history.now
        self._steps = 0
        self._known: dict[int, Relation[V]] = {}

    def of(self, tree: x.Expression, *, whole: bool) -> Relation[V]:
        """The instances up to now (`whole`), or those that end now."""
        if whole and id(tree) in self._known:
            return self._known[id(tree)]
        found: Relation[V] = getattr(self, _ROWS[type(tree)])(tree, whole)
        if whole:
            self._known[id(tree)] = found
        return found

    def _leaf(self, tree: Leaf, whole: bool) -> Relation[V]:
        return self._items(self._history.streams[tree.stream], tree.shift, whole)

    def _given(self, tree: Given, whole: bool) -> Relation[V]:
        items = self._history.streams[tree.stream]
        if not tree.shown:
            items = [i._replace(entries=self._without_ticks(i.entries)) for i in items]
        return self._items(items, tree.shift, whole)

    def _without_ticks(self, entries: Entries) -> Entries:
        return tuple(entry for entry in entries if not self._order.is_tick(entry[1]))

    def _items(self, items: Sequence[Item], shift: int, whole: bool) -> Relation[V]:
        found: Relation[V] = {}
        for start, end, entries in items:
            if whole or end == self._now:
                value = self._values.one(start, _moved(entries, shift))
                self._add(found, (start, end), value)
        return found

    def _either(self, tree: x.Or, whole: bool) -> Relation[V]:
        found: Relation[V] = {}
        for part in tree.parts:
            for interval, value in self.of(part, whole=whole).items():
                self._add(found, interval, value)
        return found

    def _conjunction(self, tree: x.AnyOf, whole: bool) -> Relation[V]:
        return self._any(tree.count, [self.of(p, whole=True) for p in tree.parts], whole)

    def _any_repeat(self, tree: x.AnyRepeat, whole: bool) -> Relation[V]:
        each = self._each(tree.part)
        if not is_plain(tree.part):
            found = self._combined(tree.count, each)
            return found if whole else self._now_only(found)
        parts = [{interval: self._values.one(interval[0], e)} for interval, e in each]
        return self._any(tree.count, parts, whole)

    def _combined(self, count: int, each: Sequence[tuple[Interval, Entries]]) -> Relation[V]:
        """Instances of a composite may share occurrences, which then count once: the best of some
        need not be made of the best of fewer, so all are looked at."""
        found: Relation[V] = {}
        for chosen in combinations(each, count):
            self._step()
            start = min(start for (start, _), _ in chosen)
            entries = tuple(dict.fromkeys(entry for _, part in chosen for entry in part))
            self._add(found, (start, chosen[-1][0][1]), self._values.one(start, entries))
        return found

    def _any(self, count: int, parts: Sequence[Relation[V]], whole: bool) -> Relation[V]:
        """The unions of one instance each of `count` of the parts. Unless `whole`, one of them ends
        now. Parts with such an instance go first, so that few unions without one are made."""
        fresh = parts if whole else [self._now_only(part) for part in parts]
        order = sorted(range(len(parts)), key=lambda n: not fresh[n])
        last = max((i for i, n in enumerate(order) if fresh[n]), default=-1)
        chosen: list[Relation[V]] = [{} for _ in range(count + 1)]
        older: list[Relation[V]] = [{} for _ in range(count + 1)]
        for i, n in enumerate(order):
            rest = {} if whole or i >= last else self._before(parts[n])
            for m in range(count, 1, -1):
                self._unite(chosen[m], chosen[m - 1], parts[n])
                self._unite(chosen[m], older[m - 1], fresh[n])
                self._unite(older[m], older[m - 1], rest)
            for found, new in ((chosen[1], fresh[n]), (older[1], rest)):
                for interval, value in new.items():
                    self._add(found, interval, value)
        return chosen[count]

    def _unite(self, found: Relation[V], left: Relation[V], right: Relation[V]) -> None:
        for (a, b), one in left.items() if right else ():
            for (c, d), other in right.items():
                self._join(found, (a, one), (c, other), max(b, d))

    def _now_only(self, found: Relation[V]) -> Relation[V]:
        return {i: v for i, v in found.items() if i[1] == self._now}

    def _before(self, found: Relation[V]) -> Relation[V]:
        return {i: v for i, v in found.items() if i[1] < self._now}

    def _each(self, tree: x.Expression, *, whole: bool = True) -> list[tuple[Interval, Entries]]:
        """What counts as an occurrence, in order of end: all that is plain, each in the first role
        that it has (S9); of a composite the greatest of each instant (S1). Unless `whole`, only
        what ends now may be asked for."""
        if leaves := plain_leaves(tree):
            first = {leaf.stream: leaf.shift for leaf in reversed(leaves)}
            found = [
                ((start, end), _moved(entries, shift))
                for stream, shift in first.items()
                for start, end, entries in self._history.streams[stream]
            ]
            return sorted(found, key=lambda each: each[0][1])
        if is_plain(tree):
            alike: dict[object, tuple[Interval, Entries]] = {}
            for interval, entries in self._every(tree):
                rows = frozenset(self._order.occurrences(entries))
                alike.setdefault((interval, rows), (interval, entries))
            return sorted(alike.values(), key=lambda each: each[0][1])
        choosing = Choosing(self._order, True)
        latest: dict[int, tuple[int, Entries]] = {}
        for (start, end), bests in self._also(choosing).of(tree, whole=whole).items():
            if end not in latest or start > latest[end][0]:
                latest[end] = start, choosing.greatest(end, bests).entries
        return [((start, end), entries) for end, (start, entries) in sorted(latest.items())]

    def _every(self, tree: x.Expression) -> Iterator[tuple[Interval, Entries]]:
        """The occurrences of a plain expression, from its left, in every role."""
        if isinstance(tree, Point):
            for (_, end), entries in self._every(tree.part):
                yield (end, end), ((tree.role, self._order.point(end, entries, each=True)),)
        elif isinstance(tree, Leaf):
            for start, end, entries in self._history.streams[tree.stream]:
                yield (start, end), _moved(entries, tree.shift)
        else:
            for part in tree.operands():
                yield from self._every(part)

    def _point(self, tree: Point, whole: bool) -> Relation[V]:
        """The instances of x as points at their ends; each is compared as one occurrence."""
        if tree.each:
            each = self._each(tree)
        else:
            each = [
                ((end, end), ((tree.role, self._order.point(end, entries, each=False)),))
                for (_, end), entries in self._each(tree.part, whole=whole)
            ]
        found: Relation[V] = {}
        for interval, entries in each:
            if whole or interval[1] == self._now:
                self._add(found, interval, self._values.one(interval[0], entries))
        return found

    def _also(self, values: Values[Any]) -> Search[Any]:
        """The same search in another semiring."""
        return Search(self._history, values)

    def _sequence(self, tree: x.Seq, whole: bool) -> Relation[V]:
        return self._pairs(tree.first, tree.then, whole, lambda _, __: True)

    def _not(self, tree: x.Not, whole: bool) -> Relation[V]:
        looked = self._looked(tree.absent)

        def free(since: int, until: int) -> bool:
            return not any(since < start and end <= until for start, end, _ in looked)

        return self._pairs(tree.opener, tree.closer, whole, free)

    def _looked(self, at: x.Expression) -> Sequence[Item]:
        return self._history.looked[at.stream] if isinstance(at, Looked) else ()

    def _until(
        self, opener: x.Expression, after: x.Own, whole: bool, free: Callable[[int, int], bool]
    ) -> Relation[V]:
        found: Relation[V] = {}
        for (start, end), value in self.of(opener, whole=True).items():
            point = self._after(end, after.duration)
            due = point <= self._now if whole else point == self._now
            if due and free(end, point):
                self._add(found, (start, point), value)
        return found

    def _pairs(
        self, first: x.Expression, then: x.Expression, whole: bool, free: Callable[[int, int], bool]
    ) -> Relation[V]:
        """The unions a u b with e(a) < s(b), if the span from e(a) to e(b) is `free`."""
        if isinstance(then, x.Own):
            return self._until(first, then, whole, free)
        found: Relation[V] = {}
        following = self.of(then, whole=whole)
        if not following:
            return found
        for (start, end), left in self.of(first, whole=True).items():
            for (begin, until), right in following.items():
                if end < begin and free(end, until):
                    self._join(found, (start, left), (begin, right), until)
        return found

    def _minus(self, tree: x.Minus, whole: bool) -> Relation[V]:
        absent = self._looked(tree.absent)
        return {
            (start, end): value
            for (start, end), value in self.of(tree.part, whole=whole).items()
            if not any(start <= begin and until <= end for begin, until, _ in absent)
        }

    def _within(self, tree: x.Within, whole: bool) -> Relation[V]:
        return {
            (start, end): value
            for (start, end), value in self.of(tree.part, whole=whole).items()
            if end <= self._after(start, tree.duration)
        }

    def _sifted(self, tree: Sifted, whole: bool) -> Relation[V]:
        """Every assignment is looked at: the best of them need not be left."""
        inner = self._also(All()).of(tree.part, whole=whole)
        every = [(interval, entries) for interval, each in inner.items() for entries in each]
        true = self._history.asking.true(tree, [self._order.expanded(e) for _, e in every])
        found: Relation[V] = {}
        for (interval, entries), kept in zip(every, true, strict=True):
            if kept:
                self._add(found, interval, self._values.one(interval[0], entries))
        return found

    def _aperiodic(self, tree: x.Aperiodic, whole: bool) -> Relation[V]:
        windows = [
            (opened, self._close(opened, tree.closer)) for _, opened, _ in self._looked(tree.opener)
        ]
        return {
            (start, end): value
            for (start, end), value in self.of(tree.part, whole=whole).items()
            if any(opened <= start and end <= close for opened, close in windows)
        }

    def _close(self, opened: int, closer: x.Expression) -> int:
        """The end of a window, as far as it is known."""
        if isinstance(closer, x.Own):
            return self._after(opened, closer.duration)
        closers = self._looked(closer)
        return min((end for start, end, _ in closers if start > opened), default=self._now)

    def _window(self, tree: x.AperiodicStar, whole: bool) -> Relation[V]:
        found: Relation[V] = {}
        each = [] if isinstance(tree.part, Ticks) else self._each(tree.part)
        for (start, opened), close, closing in self._closed(tree):
            if close <= self._now if whole else close == self._now:
                left = self.of(tree.opener, whole=True)[start, opened]
                inside = [i for (s, e), i in each if opened <= s and e <= close]
                ticks = self._ticks(tree.part, opened, close)
                entries = tuple(
                    dict.fromkeys(e for part in (closing, *inside, ticks) for e in part)
                )
                starts = [self._order.start[row] for row in self._order.rows(entries)]
                begin = min(starts, default=close)
                right = self._values.one(begin, entries)
                self._join(found, (start, left), (begin, right), close)
        return found

    def _ticks(self, part: x.Expression, opened: int, close: int) -> Entries:
        """The ticks of a window of `P*`, where they are parameters."""
        if not isinstance(part, Ticks) or not part.shown:
            return ()
        anchor = np.array([opened])
        until = np.array([close])
        _, instants = calendar.multiples(
            anchor, anchor, until, part.period, self._history.sought.zone
        )
        return tuple((part.role, self._order.tick(part.source, i)) for i in instants.tolist())

    def _closed(self, tree: x.AperiodicStar) -> Iterator[Closed]:
        """The window of each opener, closed by the first c, of several by the lowest in rank (S4),
        or by itself."""
        openers = self.of(tree.opener, whole=True)
        if isinstance(tree.closer, x.Own):
            for interval in openers:
                yield interval, self._after(interval[1], tree.closer.duration), ()
            return
        closers = [
            (end, self._order.ranks(entries), start, *self._order.alike(entries), entries)
            for (start, end), instances in self._also(All()).of(tree.closer, whole=True).items()
            for entries in instances
        ]
        for interval in openers:
            after = [closer for closer in closers if closer[2] > interval[1]]
            if after:
                end, *_, entries = min(after)
                yield interval, end, entries

    def _after(self, instant: int, duration: x.Duration) -> int:
        """The point so long after an instant."""
        return calendar.add(instant, duration, self._history.sought.zone)

    def _add(self, found: Relation[V], interval: Interval, value: V) -> None:
        known = found.get(interval)
        found[interval] = value if known is None else self._values.add(known, value)

    def _join(
        self, found: Relation[V], left: tuple[int, V], right: tuple[int, V], end: int
    ) -> None:
        self._step(self._values.joins(left[1], right[1]))
        value = self._values.join(*left, *right)
        self._add(found, (min(left[0], right[0]), end), value)

    def _step(self, joins: int = 1) -> None:
        self._steps += joins
        if self._steps > self._history.sought.steps_max:
            raise LimitError(
                "search-steps",
                f"choosing among the instances at {self._now} us takes more than"
                f" {self._history.sought.steps_max} steps (setting search_steps_max)",
                "bound the expression by `within`, or raise search_steps_max",
            )


def _moved(entries: Entries, shift: int) -> Entries:
    """Entries with their roles moved up."""
    return tuple([(role + shift, row) for role, row in entries]) if shift else entries


_ROWS: Mapping[type[x.Expression], str] = {
    Leaf: "_leaf",
    Given: "_given",
    x.Or: "_either",
    x.AnyOf: "_conjunction",
    x.Seq: "_sequence",
    x.BoundedSeq: "_sequence",
    x.Minus: "_minus",
    x.Within: "_within",
    Sifted: "_sifted",
    Point: "_point",
    x.Not: "_not",
    x.Aperiodic: "_aperiodic",
    x.AperiodicStar: "_window",
    x.AnyRepeat: "_any_repeat",
}
