"""What one key has not used up yet, at one instant, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.detector.contexts.items import Interval, Streams
from engine.detector.contexts.search import Search
from engine.detector.contexts.tree import Tree
from engine.detector.contexts.values import Best, Choosing, Entries, Rank, V, Values

Found = tuple[int, Entries]
"""A detection: its start and its entries."""

Initiator = int | tuple[int]
"""An occurrence, or the instant of an instance without any occurrence at its start."""


@dataclass
class History:
    """One key: `coming` is what has not happened yet, `unused` what has and is not used up; the
    ranks of all occurrences; what is used up and what has initiated. Roles that are `silent` are no
    parameters."""

    tree: Tree
    coming: Streams
    unused: Streams
    rank: Mapping[int, Rank]
    silent: frozenset[int]
    steps_max: int
    used: set[int]
    initiated: set[Initiator]
    now: int = 0

    def advance(self, now: int, oldest: int) -> None:
        """Let what happens up to `now` happen; what starts before `oldest` is of no use."""
        self.now = now
        self.unused.move(now, self.coming)
        self.unused.keep(
            lambda item: item.start >= oldest and self.used.isdisjoint(r for _, r in item.entries)
        )

    def ending(self, values: Values[V]) -> dict[int, V]:
        """D in some semiring, by start."""
        return Search(values, self.unused, self.rank, self.now, self.steps_max).ending(self.tree)

    def upto(self, tree: Tree, values: Values[V]) -> Mapping[Interval, V]:
        """All instances of a part of the expression that end by now."""
        search = Search(values, self.unused, self.rank, self.now, self.steps_max)
        return search.of(tree, whole=True)

    def choosing(self, *, latest: bool, initiators: bool = False) -> Choosing:
        return Choosing(self.rank, latest, initiators)

    def use_up(self, rows: Iterable[int]) -> None:
        self.used |= set(rows)
        self.unused.keep(lambda item: self.used.isdisjoint(row for _, row in item.entries))


def oldest(bests: Sequence[tuple[int, Best]]) -> Found:
    """S3: oldest `times` (a list that has ended is older), then lower ranks, then older start."""
    start, best = min(bests, key=lambda found: (found[1].times, found[1].ranks, found[0]))
    return start, best.entries
