"""A feed whose commits stand at virtual instants, whatever their files say."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tidegate.engine.core.instants import floor_millisecond
from tidegate.engine.core.ports import Feed, ReadRequest, TableHead
from tidegate.engine.core.values import Commit, Cursor, TableRange
from tidegate.rules.model import Table


@dataclass(slots=True)
class PlacedFeed:
    """Implements `engine.core.ports.Feed` by another one. `now`: the virtual clock.

    `place` gives an instant to each commit that has none yet, the present one. It is called after
    each commit, or before the clock goes on.

    Example: version 0 was placed at 6:59:59.999, and the clock is at 7:00. Two rows are inserted:
    version 1 is placed at 7:00. What an action writes a millisecond later stands there.
    """

    feed: Feed
    tables: Mapping[str, Table]
    now: Callable[[], int]
    _instants: dict[str, list[int]] = field(default_factory=dict)  # by table, of each version

    def place(self) -> None:
        """Give the present instant to all commits that have none."""
        for table in self.tables.values():
            self._place(table)

    def _place(self, table: Table) -> None:
        known = self._instants.setdefault(table.name, [])
        at = floor_millisecond(self.now())
        known += [at] * (self.feed.version(table) + 1 - len(known))

    def head(self, table: Table, after: Cursor | None) -> TableHead:
        """See `engine.core.ports.Feed.head`."""
        self._place(table)
        found = self.feed.head(table, after)
        at = self._instants[table.name]

        def placed(commit: Commit) -> Commit:
            return replace(commit, instant=at[commit.version])

        return replace(
            found,
            cursor=replace(found.cursor, instant=at[found.cursor.version]),
            commits=tuple(map(placed, found.commits)),
            left_out=found.left_out and placed(found.left_out),
        )

    def version(self, table: Table) -> int:
        """See `engine.core.ports.Feed.version`."""
        return self.feed.version(table)

    def earliest(self, table: Table, cursor: Cursor, column: str) -> int | None:
        """See `engine.core.ports.Feed.earliest`."""
        return self.feed.earliest(table, cursor, column)

    def version_at(self, table: Table, instant: int) -> int | None:
        """See `engine.core.ports.Feed.version_at`."""
        self._place(table)
        before = bisect_right(self._instants[table.name], instant)
        return before - 1 if before else None

    def read(self, table: Table, span: TableRange, request: ReadRequest) -> pa.Table:
        """See `engine.core.ports.Feed.read`."""
        return self.feed.read(table, span, request)

    def history(self, table: Table, span: TableRange) -> pa.Table:
        """See `engine.core.ports.Feed.history`."""
        return self.feed.history(table, span)

    def decide(self, rows: pa.Table, where: Mapping[str, str], source: str) -> pa.Table:
        """See `engine.core.ports.Feed.decide`."""
        return self.feed.decide(rows, where, source)
