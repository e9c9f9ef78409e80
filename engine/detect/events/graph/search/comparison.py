"""What instances are compared by (S1, S3)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.kernels.columns import TICK_RANK
from tidegate.engine.detect.events.occurrences.instances import Moment

Entry = tuple[int, int]
"""An occurrence, or a tick, by its row, in a role: (role, row)."""
Entries = tuple[Entry, ...]
Mark = int | tuple[int] | tuple[int, frozenset[int]]
"""An occurrence; or the instant of an instance without any occurrence at its start; or the instant
of a point and the occurrences that it holds."""

_FIRST_POINT = -(2**62)  # points are numbered from here on


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

    A point (`instant(x)`) is an entry of its own, with a row that stands for the entries of its x:
    it is compared as one occurrence at its instant, ranked by the lowest of these.
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
        self._values = sorted({*values})
        number = {value: n for n, value in enumerate(self._values)}
        self.rank: dict[int, int | Fraction] = {
            row: number[value]
            for row, value in zip(rows, values, strict=True)
            if value[2] != TICK_RANK
        }
        self._points: dict[tuple[int, frozenset[Entry]], int] = {}
        self._held: dict[int, Entries] = {}
        self._is: dict[int, int] = {}

    def is_tick(self, row: int) -> bool:
        return row not in self.rank

    def tick(self, source: str, instant: int) -> int:
        """The row of a tick of a `P*`."""
        row = self._ticks.row(source, instant)
        self.time[row] = instant
        return row

    def point(self, instant: int, entries: Entries, *, each: bool) -> int:
        """The row of a point at an instant, which stands for some entries. `each`: it is the one
        occurrence that they have."""
        ranks = self.ranks(entries)
        entries = self.expanded(entries)
        known = instant, frozenset(entries)
        if known in self._points:
            return self._points[known]
        row = self._points[known] = _FIRST_POINT - len(self._points)
        self._held[row] = entries
        self.start[row] = self.time[row] = instant
        self.rank[row] = ranks[0] if ranks else self._rank_of(instant)
        if each:
            self._is[row] = entries[0][1]
        return row

    def _rank_of(self, instant: int) -> Fraction:
        """The rank of a point that holds no occurrence: below those of all that start then."""
        below = bisect_left(self._values, (instant, instant, -math.inf)) - 1
        return below + Fraction(instant + 2**63, 2**64)

    def expanded(self, entries: Entries) -> Entries:
        """Entries with those that points stand for in their place."""
        held = self._held
        if not held or not any(row in held for _, row in entries):
            return entries
        found = (held.get(entry[1], (entry,)) for entry in entries)
        return tuple(dict.fromkeys(entry for each in found for entry in each))

    def occurrences(self, entries: Entries) -> list[int]:
        """The rows that are no ticks."""
        return [row for _, row in self.expanded(entries) if row in self.rank]

    def ranks(self, entries: Iterable[Entry]) -> tuple[int | Fraction, ...]:
        """Of all occurrences and points, in every role."""
        return tuple(sorted([self.rank[row] for _, row in entries if row in self.rank]))

    def rows(self, entries: Iterable[Entry]) -> list[int]:
        """All occurrences and points in order of rank. It tells apart what has equal ranks (S5)."""
        rank = self.rank
        return [row for _, row in sorted([(rank[row], row) for _, row in entries if row in rank])]

    def held(self, entries: Entries) -> tuple[float | Fraction, ...]:
        """For instances of equal times and ranks: the ranks of all their occurrences, those for
        which points stand included; a list that has ended comes last."""
        return (*self.ranks(self.expanded(entries)), math.inf)

    def alike(self, entries: Entries) -> tuple[tuple[float | Fraction, ...], list[int]]:
        """What orders instances of equal ranks where ticks and operands do not matter."""
        return self.held(entries), self.rows(self.expanded(entries))

    def tie(self, entries: Entries) -> tuple[tuple[float, ...], list[int]]:
        """For instances that hold the same ranks: of their ticks, as of times, the greater; then
        the first operands that the same occurrences can fill."""
        entries = self.expanded(entries)
        ticks = sorted(self.time[row] for row in {r for _, r in entries if self.is_tick(r)})
        return (*ticks, math.inf), sorted(-role for role, row in entries if not self.is_tick(row))

    def lowest(self, row: int) -> tuple[object, ...]:
        """What orders initiators (S2): the rank; of equal ones points before occurrences."""
        if row not in self._held or row in self._is:
            return self.rank[row], 1, self._is.get(row, row)
        held = sorted((self.rank[r], r) for r in self.occurrences(self._held[row]))
        return self.rank[row], 0, held

    def mark(self, row: int) -> Mark:
        """What has initiated where this row is the initiator. A point is known by its instant and
        the occurrences that it holds; one without any is the instant."""
        if row not in self._held or row in self._is:
            return self._is.get(row, row)
        rows = frozenset(self.occurrences(self._held[row]))
        return (self.time[row], rows) if rows else (self.time[row],)
