"""What one key has not consumed at one instant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tidegate.engine.detect.events.graph.search.comparison import Entries, Order
from tidegate.engine.detect.events.graph.search.interval_choice import Choosing, V, Values
from tidegate.engine.detect.events.graph.search.items import Interval, Item, Streams
from tidegate.engine.detect.events.graph.search.relations import Search
from tidegate.engine.detect.events.graph.search.streams import Given, ends
from tidegate.rules.expressions import nodes as x

Found = tuple[int, Entries]
"""A detection: its start and its entries."""

Initiator = int | tuple[int]
"""An occurrence, or the instant of an instance without any occurrence at its start."""


@dataclass
class History:
    """One key at one instant.

    coming      the streams that have not happened yet
    unused      the streams that have happened and are not consumed
    used        the consumed occurrences
    initiated   the occurrences and instants that have initiated
    older       whether a consumed occurrence takes along all of its event type that are not later
    """

    tree: x.Expression
    coming: Streams
    order: Order
    steps_max: int
    older: bool
    used: set[int]
    initiated: set[Initiator]
    now: int = 0
    unused: Streams = field(init=False)

    def __post_init__(self) -> None:
        self.unused = self.coming.nothing()
        self._choosing: Choosing | None = None
        self._ends = [*ends(self.tree)]
        self._newest: dict[int, int] = {}
        self._note(self.used)

    def advance(self, now: int, oldest: int) -> None:
        """Moves on to the instant `now`. Items that end before `oldest` are dropped."""
        self.now = now
        self.unused.move(now, self.coming, self._held)
        self.unused.forget(oldest)

    def ending(self, values: Values[V]) -> dict[int, V]:
        """D as values of a semiring: start -> value."""
        return self._search(values).ending(self.tree) if self._may_end() else {}

    def upto(self, tree: x.Expression, values: Values[V]) -> Mapping[Interval, V]:
        """All instances of a part of the expression that end by now."""
        return self._search(values).of(tree, whole=True)

    def _may_end(self) -> bool:
        """Whether anything ends now that an instance could end with."""
        for leaf, path in self._ends:
            streams = self.unused.given if isinstance(leaf, Given) else self.unused.events
            if path or (streams[leaf.stream] and streams[leaf.stream][-1].end == self.now):
                return True
        return False

    def _search(self, values: Values[V]) -> Search[V]:
        return Search(values, self.unused, self.order, self.now, self.steps_max)

    def choosing(self, *, latest: bool, initiators: bool = False) -> Choosing:
        if self._choosing is None:
            self._choosing = Choosing(self.order, latest, initiators)
        return self._choosing

    def use_up(self, entries: Entries) -> None:
        """Consume the occurrences of an instance."""
        rows = {*self.order.occurrences(entries)}
        self.used |= rows
        self._note(rows)
        if self.older:
            self.unused.keep(self._held)
        else:
            self.unused.keep(lambda item: rows.isdisjoint(row for _, row in item.entries))

    def gone(self, row: int) -> bool:
        """Is an occurrence consumed?"""
        if row in self.used:
            return True
        _, time, _, _, event = self.order.rank[row]
        newest = self._newest.get(event)
        return newest is not None and time <= newest

    def _held(self, item: Item) -> bool:
        return not any(self.gone(row) for _, row in item.entries)

    def _note(self, rows: Iterable[int]) -> None:
        for row in rows if self.older else ():
            _, time, _, _, event = self.order.rank[row]
            self._newest[event] = max(time, self._newest.get(event, time))
