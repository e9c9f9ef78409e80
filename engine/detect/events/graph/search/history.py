"""What one key has not consumed at one instant: what a choice is made among."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidegate.engine.detect.events.graph.search.asking import Asking
from tidegate.engine.detect.events.graph.search.comparison import Entries, Mark, Order
from tidegate.engine.detect.events.graph.search.interval_choice import Choosing
from tidegate.engine.detect.events.graph.search.streams import Leaf
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Context

Found = tuple[int, Entries]
"""A detection: its start and its entries."""


class Item(NamedTuple):
    """One instance of a stream: an occurrence, what is given, or an interval that is looked at."""

    start: int
    end: int
    entries: Entries


class Sought(NamedTuple):
    """What is looked for in every key. `context`: None for a selection. Months count in `zone`.
    `silent`: the roles that are no parameters. `ends`: of the tree, as `streams.ends` has them."""

    tree: x.Expression
    context: Context | None
    zone: str
    silent: frozenset[int]
    ends: Sequence[tuple[Leaf, Sequence[x.Duration]]]
    steps_max: int


@dataclass
class History:
    """One key at one instant, `now`.

    streams     the items of each stream that have happened and are not consumed, in order of end;
                the first `filled` ones have entries, the others, `looked`, are only looked at
    coming      of each stream the items that have not happened yet, the latest first
    marks       the consumed occurrences; in `continuous` what has initiated
    asking      what the rule's `where` says of assignments

    Example: of `(a ; b) and c` with a@1 b@2 c@3 b@4, the streams at 3 are [a@1] [b@2] [c@3], and
    b@4 is coming. When `chronicle` has detected these three, all streams are empty.
    """

    sought: Sought
    filled: int
    coming: Sequence[list[Item]]
    order: Order
    marks: set[Mark]
    asking: Asking
    now: int = 0
    streams: Sequence[list[Item]] = field(init=False)
    looked: Sequence[list[Item]] = field(init=False)

    def __post_init__(self) -> None:
        self.streams = [[] for _ in self.coming]
        self.looked = self.streams[self.filled :]
        self._choosing: Choosing | None = None
        self._newest: dict[int, int] = {}
        self._note(self.marks)

    def advance(self, now: int, oldest: int) -> None:
        """Moves on to the instant `now`. Items that end before `oldest` are dropped."""
        self.now = now
        for stream, coming in zip(self.streams, self.coming, strict=True):
            while coming and coming[-1].end <= now:
                item = coming.pop()
                if not self._consumed(item):
                    stream.append(item)
        for stream in self.streams[: self.filled]:
            if stream and stream[0].end < oldest:
                del stream[: bisect_left(stream, oldest, key=lambda item: item.end)]

    def may_end(self) -> bool:
        """Whether anything ends now that an instance could end with."""
        for leaf, path in self.sought.ends:
            stream = self.streams[leaf.stream]
            if path or (stream and stream[-1].end == self.now):
                return True
        return False

    def choosing(self, *, latest: bool, initiators: bool = False) -> Choosing:
        """How this key's instances are compared; of one kind in all of a step."""
        if self._choosing is None:
            self._choosing = Choosing(self.order, latest, initiators)
        return self._choosing

    def use_up(self, entries: Entries) -> None:
        """Consume the occurrences of an instance."""
        rows = self.order.occurrences(entries)
        self.marks.update(rows)
        self._note(rows)
        for stream in self.streams[: self.filled]:
            stream[:] = [item for item in stream if not self._consumed(item)]

    def gone(self, row: int) -> bool:
        """Is an occurrence consumed?"""
        if not self._newest:
            return row in self.marks and self.sought.context is not Context.CONTINUOUS
        newest = self._newest.get(self.order.event[row])
        return newest is not None and self.order.time[row] <= newest

    def _consumed(self, item: Item) -> bool:
        return any(self.gone(row) for _, row in item.entries)

    def _note(self, marks: Iterable[Mark]) -> None:
        """In `recent`, consumed occurrences take along all of their types that are not later."""
        for row in marks if self.sought.context is Context.RECENT else ():
            if isinstance(row, int):
                event, time = self.order.event[row], self.order.time[row]
                self._newest[event] = max(time, self._newest.get(event, time))
