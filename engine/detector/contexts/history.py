"""What one key has not used up yet, at one instant, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from engine.detector.contexts.search import Interval, Search
from engine.detector.contexts.tree import Tree
from engine.detector.contexts.values import (
    Best,
    Choosing,
    Entries,
    Rank,
    V,
    Values,
)

Found = tuple[int, Entries]
"""A detection: its start and its entries."""

Initiator = int | tuple[int]
"""An item, or the instant of an instance without any occurrence at its start."""


@dataclass
class History:
    """The items of one key: intervals and ranks by item.

    items[s]: all items of stream s, looked[s]: all intervals of stream s that is looked at, both
    in order of end; unused[s]: the items of stream s up to `now` that are not in `used`.
    """

    tree: Tree
    intervals: Mapping[int, Interval]
    rank: Mapping[int, Rank]
    items: Sequence[Sequence[int]]
    looked: Sequence[Sequence[Interval]]
    steps_max: int
    used: set[int]
    initiated: set[Initiator]
    now: int = 0
    unused: list[list[int]] = field(default_factory=list)

    def advance(self, now: int, oldest: int) -> None:
        """Let what happens up to `now` happen; what starts before `oldest` is of no use."""
        self.now = now
        self.unused = [
            [
                item
                for item in stream
                if item not in self.used
                and self.intervals[item][1] <= now
                and self.intervals[item][0] >= oldest
            ]
            for stream in self.items
        ]

    def ending(self, values: Values[V]) -> dict[int, V]:
        """D in some semiring, by start."""
        looked = [[i for i in stream if i[1] <= self.now] for stream in self.looked]
        search = Search(values, self.unused, looked, self.intervals, self.now, self.steps_max)
        return search.ending(self.tree)

    def choosing(self, *, latest: bool, initiators: bool = False) -> Choosing:
        return Choosing(self.intervals, self.rank, latest, initiators)

    def use_up(self, items: Collection[int]) -> None:
        self.used |= set(items)
        self.unused = [[i for i in stream if i not in self.used] for stream in self.unused]


def oldest(bests: Sequence[tuple[int, Best]]) -> Found:
    """S3: oldest `times` (a list that has ended is older), then lower ranks, then older start."""
    start, best = min(bests, key=lambda found: (found[1].times, found[1].ranks, found[0]))
    return start, best.entries
