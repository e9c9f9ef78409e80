"""Which version of a table was the last one at an instant (G1, G14)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidegate.engine.core.ports import Feed
from tidegate.engine.core.values import Plan
from tidegate.rules.model import Table

History = Callable[[str, int], int | None]
"""The last version of a table at an instant, as earlier buckets have placed its commits."""


@dataclass(frozen=True, slots=True)
class AsOf:
    """Asked of the plan's own commits, then of the history of earlier ones, then of the table's
    log: an instant is computed once, and what the log says may have changed since.

    Example: a plan has the versions 4 at 10:00 and 5 at 10:01. At 10:00:30 the table was at 4.
    """

    tables: Mapping[str, Table]
    feed: Feed
    plan: Plan
    history: History

    def version(self, table: str, instant: int) -> int | None:
        """None where there was no such table then. Raises EngineError `table-missing`."""
        for span in self.plan.ranges:
            if span.table == table and not span.snapshot:
                passed = [v for v, at in span.instants.items() if at <= instant]
                if passed:
                    return max(passed)
        known = self.history(table, instant)
        return self.feed.version_at(self.tables[table], instant) if known is None else known
