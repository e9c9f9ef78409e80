"""What the search keeps of all instances with one interval: the best, their union, or all.

Each is a semiring: `add` is for two sets of instances of one operand, `join` for the unions of each
instance of one operand with each of another. An entry (shift, item) is an occurrence in a role.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

V = TypeVar("V")
Entry = tuple[int, int]
Entries = tuple[Entry, ...]
Rank = tuple[int, ...]


class Values(Protocol[V]):
    """The semiring that a search works in."""

    def one(self, shift: int, item: int) -> V:
        """The instance of a single occurrence."""
        ...

    def add(self, left: V, right: V) -> V: ...

    def join(self, left_start: int, left: V, right_start: int, right: V) -> V: ...


@dataclass(frozen=True, slots=True)
class Best:
    """One instance with what it is compared by: instants and ranks, both sorted."""

    times: tuple[int, ...]
    ranks: tuple[Rank, ...]
    entries: Entries


Group = tuple[int | None, int]
"""An initiator, where it matters, and how many entries there are."""
Bests = Mapping[Group, Best]


@dataclass(frozen=True, slots=True)
class Choosing:
    """The best instance of each number of entries, and of each initiator if `initiators`.

    Of two instances of one length the order by (times, ranks) is kept when both are united with the
    same third one, which is why the best of each operand are enough. `latest`: the greatest is best
    (S1), else the least (S3). Intervals and ranks by item.
    """

    intervals: Mapping[int, tuple[int, int]]
    rank: Mapping[int, Rank]
    latest: bool
    initiators: bool = False

    def one(self, shift: int, item: int) -> Bests:
        group = (item if self.initiators else None, 1)
        return {group: Best((self.intervals[item][1],), (self.rank[item],), ((shift, item),))}

    def add(self, left: Bests, right: Bests) -> Bests:
        found = dict(left)
        for group, best in right.items():
            known = found.get(group)
            if known is None or self.better(best, known):
                found[group] = best
        return found

    def join(self, left_start: int, left: Bests, right_start: int, right: Bests) -> Bests:
        found: dict[Group, Best] = {}
        for (first, m), a in left.items():
            for (second, n), b in right.items():
                group = (self._initiator(left_start, first, right_start, second), m + n)
                best = Best(
                    tuple(sorted(a.times + b.times)),
                    tuple(sorted(a.ranks + b.ranks)),
                    a.entries + b.entries,
                )
                known = found.get(group)
                if known is None or self.better(best, known):
                    found[group] = best
        return found

    def better(self, left: Best, right: Best) -> bool:
        """Of two of one length."""
        if self.latest:
            return (left.times, left.ranks) > (right.times, right.ranks)
        return (left.times, left.ranks) < (right.times, right.ranks)

    def _initiator(
        self, left_start: int, left: int | None, right_start: int, right: int | None
    ) -> int | None:
        """S2: the lowest in rank of those at the start."""
        if left_start != right_start:
            return left if left_start < right_start else right
        if left is None or right is None:
            return right if left is None else left
        return min(left, right, key=self.rank.__getitem__)


class Union:
    """The union of all instances."""

    def one(self, shift: int, item: int) -> frozenset[Entry]:
        return frozenset([(shift, item)])

    def add(self, left: frozenset[Entry], right: frozenset[Entry]) -> frozenset[Entry]:
        return left | right

    def join(
        self, _: int, left: frozenset[Entry], __: int, right: frozenset[Entry]
    ) -> frozenset[Entry]:
        return left | right


class All:
    """Every instance."""

    def one(self, shift: int, item: int) -> Sequence[Entries]:
        return [((shift, item),)]

    def add(self, left: Sequence[Entries], right: Sequence[Entries]) -> Sequence[Entries]:
        return [*left, *right]

    def join(
        self, _: int, left: Sequence[Entries], __: int, right: Sequence[Entries]
    ) -> Sequence[Entries]:
        return [a + b for a in left for b in right]
