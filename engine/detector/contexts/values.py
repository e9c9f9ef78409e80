"""What the search keeps of all instances with one interval: the best, their union, or all.

Each is a semiring: `add` is for two sets of instances of one operand, `join` for the unions of each
instance of one operand with each of another. An entry (role, row) is an occurrence in a role.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

V = TypeVar("V")
Entry = tuple[int, int]
Entries = tuple[Entry, ...]
Rank = tuple[int, ...]


class Values(Protocol[V]):
    """The semiring that a search works in."""

    def one(self, start: int, entries: Entries) -> V:
        """A single instance."""
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
    (S1), else the least (S3). rank[row] begins with the occurrence's instant.
    """

    rank: Mapping[int, Rank]
    latest: bool
    initiators: bool = False

    def one(self, start: int, entries: Entries) -> Bests:
        ranks = tuple(sorted(self.rank[row] for _, row in entries))
        times = tuple(rank[0] for rank in ranks)
        first = None
        if self.initiators:
            at_start = [row for _, row in entries if self.rank[row][0] == start]
            first = min(at_start, key=self.rank.__getitem__, default=None)
        return {(first, len(entries)): Best(times, ranks, entries)}

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


def greatest(bests: Bests) -> Best:
    """Of instances with one start the greatest (S1): of two lists the one that has ended wins."""
    return max(
        bests.values(),
        key=lambda best: ((*best.times, math.inf), (*best.ranks, (math.inf,))),
    )


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
