"""What instances are compared by (S1, S3)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from tidegate.engine.detect.events.kernels.columns import TICK_RANK

Entry = tuple[int, int]
"""An occurrence, or a tick, by its row, in a role: (role, row)."""
Entries = tuple[Entry, ...]
Rank = tuple[int, int, int, int, int]
"""Start, end, rank among the simultaneous, row, event type; a tick's rank is `TICK_RANK`."""


@dataclass(slots=True)
class Ticks:
    """The ticks that the search makes: numbered below 0, for they are no rows yet.

    made[n]: the tick -1 - n as (its type, instant).
    """

    made: list[tuple[str, int]] = field(default_factory=list)
    known: dict[tuple[str, int], int] = field(default_factory=dict)

    def row(self, source: str, instant: int) -> int:
        """The tick of a `P*` at an instant; coincident ones are one (S6)."""
        tick = source, instant
        if tick not in self.known:
            self.made.append(tick)
            self.known[tick] = -len(self.made)
        return self.known[tick]


@dataclass(slots=True)
class Order:
    """The ranks of one key's occurrences and ticks by row; the roles that are no parameters."""

    rank: dict[int, Rank]
    silent: frozenset[int]
    ticks: Ticks

    def is_tick(self, row: int) -> bool:
        return self.rank[row][2] == TICK_RANK

    def tick(self, source: str, instant: int) -> int:
        """The row of a tick of a `P*`."""
        row = self.ticks.row(source, instant)
        self.rank[row] = (instant, instant, TICK_RANK, row, -1)
        return row

    def occurrences(self, entries: Iterable[Entry]) -> list[int]:
        """The rows that are no ticks."""
        return [row for _, row in entries if self.rank[row][2] != TICK_RANK]

    def ranks(self, entries: Iterable[Entry]) -> tuple[Rank, ...]:
        """Of all occurrences, in every role."""
        found = [self.rank[row] for _, row in entries]
        return tuple(sorted([rank for rank in found if rank[2] != TICK_RANK]))

    def tie(self, entries: Entries) -> tuple[tuple[float, ...], list[int]]:
        """For instances of equal times and ranks: of their ticks, as of times, the greater; then
        the first operands that the same occurrences can fill."""
        ticks = sorted(self.rank[row][1] for row in {r for _, r in entries if self.is_tick(r)})
        return (*ticks, math.inf), sorted(-role for role, row in entries if not self.is_tick(row))
