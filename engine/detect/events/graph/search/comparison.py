"""What instances are compared by (S1, S3)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.kernels.columns import TICK_RANK
from tidegate.engine.detect.events.occurrences.instances import Moment

Entry = tuple[int, int]
"""An occurrence, or a tick, by its row, in a role: (role, row)."""
Entries = tuple[Entry, ...]


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


class Order:
    """The order of one key's occurrences. `silent`: the roles that are no parameters.

    rank[row]    its rank (S1) among the key's, a number from 0 on; equal rows have equal ranks, and
                 ticks have none
    start[row]   the instant at which it starts
    time[row]    its instant; of ticks too
    event[row]   the number of its event type

    Rows 4, 7, 9 are b at 3, and two equal a's at 2: rank {4: 1, 7: 0, 9: 0}.
    """

    def __init__(
        self, row: Int64, event: Int64, moment: Moment, silent: frozenset[int], ticks: Ticks
    ) -> None:
        """`event` numbers the event types of `row`."""
        self.silent = silent
        self._ticks = ticks
        rows, start, time = row.tolist(), moment.start[row].tolist(), moment.time[row].tolist()
        self.start = dict(zip(rows, start, strict=True))
        self.time = dict(zip(rows, time, strict=True))
        self.event = dict(zip(rows, event.tolist(), strict=True))
        values = list(zip(start, time, moment.rank[row].tolist(), strict=True))
        number = {value: n for n, value in enumerate(sorted({*values}))}
        self.rank = {
            row: number[value]
            for row, value in zip(rows, values, strict=True)
            if value[2] != TICK_RANK
        }

    def is_tick(self, row: int) -> bool:
        return row not in self.rank

    def tick(self, source: str, instant: int) -> int:
        """The row of a tick of a `P*`."""
        row = self._ticks.row(source, instant)
        self.time[row] = instant
        return row

    def occurrences(self, entries: Iterable[Entry]) -> list[int]:
        """The rows that are no ticks."""
        return [row for _, row in entries if row in self.rank]

    def ranks(self, entries: Iterable[Entry]) -> tuple[int, ...]:
        """Of all occurrences, in every role."""
        return tuple(sorted([self.rank[row] for _, row in entries if row in self.rank]))

    def rows(self, entries: Iterable[Entry]) -> list[int]:
        """All occurrences in order of rank. It tells apart what has equal ranks (S5)."""
        rank = self.rank
        return [row for _, row in sorted([(rank[row], row) for _, row in entries if row in rank])]

    def tie(self, entries: Entries) -> tuple[tuple[float, ...], list[int]]:
        """For instances of equal times and ranks: of their ticks, as of times, the greater; then
        the first operands that the same occurrences can fill."""
        ticks = sorted(self.time[row] for row in {r for _, r in entries if self.is_tick(r)})
        return (*ticks, math.inf), sorted(-role for role, row in entries if not self.is_tick(row))
