"""What the search keeps of all instances with one interval: the best, their union, or all.

Each is a semiring: `add` is for two sets of instances of one operand, `join` for the unions of each
instance of one operand with each of another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, TypeVar

from tidegate.engine.detect.events.graph.search.comparison import Entries, Entry, Order

Interval = tuple[int, int]
V = TypeVar("V")


class Values(Protocol[V]):
    """The semiring that a search works in."""

    def one(self, start: int, entries: Entries) -> V:
        """A single instance."""
        ...

    def add(self, left: V, right: V) -> V: ...

    def join(self, left_start: int, left: V, right_start: int, right: V) -> V: ...

    def joins(self, left: V, right: V) -> int:
        """How many instances `join` makes."""
        ...


@dataclass(frozen=True, slots=True)
class Best:
    """One instance with what it is compared by: instants and ranks, both sorted."""

    times: tuple[int, ...]
    ranks: tuple[int | Fraction, ...]
    entries: Entries


Group = tuple[int | None, int, bool]
"""An initiator, where it matters; in how many roles there are occurrences or points; and whether
there is any occurrence, as an instance without is detected once (S3)."""
Bests = Mapping[Group, Best]


@dataclass(frozen=True, slots=True)
class Choosing:
    """The best instance of each number of occurrences, and of each initiator if `initiators`.

    Of two instances of one length the order by (times, ranks) is kept when both are united with the
    same third one, which is why the best of each operand are enough. `latest`: the greatest is best
    (S1), else the least (S3).
    """

    order: Order
    latest: bool
    initiators: bool = False
    known: dict[tuple[int, Entries], Bests] = field(default_factory=dict, repr=False)
    """What `one` has answered: every instant asks again."""

    def one(self, start: int, entries: Entries) -> Bests:
        found = self.known.get((start, entries))
        if found is None:
            found = self.known[start, entries] = self._one(start, entries)
        return found

    def _one(self, start: int, entries: Entries) -> Bests:
        order = self.order
        rows = order.rows(entries)
        first = None
        if self.initiators:
            beginning = (row for row in rows if order.start[row] == start)
            first = min(beginning, key=order.lowest, default=None)
        instant = order.start if self.latest else order.time
        times = tuple(sorted([instant[row] for row in rows]))
        ranks = tuple([order.rank[row] for row in rows])
        filled = bool(order.occurrences(entries))
        return {(first, len(rows), filled): Best(times, ranks, entries)}

    def add(self, left: Bests, right: Bests) -> Bests:
        found = dict(left)
        for group, best in right.items():
            known = found.get(group)
            if known is None or self.better(best, known):
                found[group] = best
        return found

    def join(self, left_start: int, left: Bests, right_start: int, right: Bests) -> Bests:
        found: dict[Group, Best] = {}
        for (first, m, one), a in left.items():
            for (second, n, other), b in right.items():
                initiator = self._initiator(left_start, first, right_start, second)
                group = (initiator, m + n, one or other)
                best = Best(
                    tuple(sorted(a.times + b.times)),
                    tuple(sorted(a.ranks + b.ranks)),
                    a.entries + b.entries,
                )
                known = found.get(group)
                if known is None or self.better(best, known):
                    found[group] = best
        return found

    def joins(self, left: Bests, right: Bests) -> int:
        return len(left) * len(right)

    def better(self, left: Best, right: Best) -> bool:
        """Of two of one length."""
        if left.times != right.times:
            return (left.times > right.times) == self.latest
        if left.ranks != right.ranks:
            return (left.ranks > right.ranks) == self.latest
        return self._tie(left) > self._tie(right)

    def _tie(self, best: Best) -> tuple[object, ...]:
        """Of equal times and ranks the greater is best. Equal rows (S5) are in order of their
        numbers, `latest` or not; this is no matter of values, and comes last in S1's order."""
        held, rows = self.order.alike(best.entries)
        ticks, operands = self.order.tie(best.entries)
        if self.latest:
            return held, ticks, rows, operands
        return [-rank for rank in held], [-row for row in rows], ticks, operands

    def greatest(self, end: int, bests: Bests) -> Best:
        """Of instances with one interval the greatest (S1): of two lists the one that has ended
        wins; an instance without occurrences counts its own instant, its end."""
        return max(
            bests.values(),
            key=lambda best: (
                (*(best.times or (end,)), math.inf),
                (*best.ranks, math.inf),
                self._tie(best),
            ),
        )

    def oldest(self, end: int, found: Sequence[tuple[int, Best]]) -> tuple[int, Best]:
        """Of instances (start, ..) that end at `end` the one with the oldest `times` (S3): a list
        that has ended is older; then lower ranks, then older start. Of what differs in ticks alone,
        which is one instance of D (S5), it takes the same as every context."""

        def key(one: tuple[int, Best]) -> tuple[object, ...]:
            return one[1].times or (end,), one[1].ranks, one[0]

        least = min(map(key, found))
        alike = [one for one in found if key(one) == least]
        return max(alike, key=lambda one: self._tie(one[1]))

    def _initiator(
        self, left_start: int, left: int | None, right_start: int, right: int | None
    ) -> int | None:
        """S2: the lowest in rank of those at the start."""
        if left_start != right_start:
            return left if left_start < right_start else right
        if left is None or right is None:
            return right if left is None else left
        return min(left, right, key=self.order.lowest)


class Union:
    """The union of all instances."""

    def one(self, _: int, entries: Entries) -> frozenset[Entry]:
        return frozenset(entries)

    def add(self, left: frozenset[Entry], right: frozenset[Entry]) -> frozenset[Entry]:
        return left | right

    def join(
        self, _: int, left: frozenset[Entry], __: int, right: frozenset[Entry]
    ) -> frozenset[Entry]:
        return left | right

    def joins(self, _: frozenset[Entry], __: frozenset[Entry]) -> int:
        return 1


class All:
    """Every instance."""

    def one(self, _: int, entries: Entries) -> Sequence[Entries]:
        return [entries]

    def add(self, left: Sequence[Entries], right: Sequence[Entries]) -> Sequence[Entries]:
        return [*left, *right]

    def join(
        self, _: int, left: Sequence[Entries], __: int, right: Sequence[Entries]
    ) -> Sequence[Entries]:
        return [a + b for a in left for b in right]

    def joins(self, left: Sequence[Entries], right: Sequence[Entries]) -> int:
        return len(left) * len(right)
