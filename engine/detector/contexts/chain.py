"""`a ; b ; c ..` over distinct event types of one key, in any context but `restricted`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tidegate.engine.detector.contexts import chains
from tidegate.engine.detector.contexts.limits import check_carried
from tidegate.engine.detector.contexts.timeline import ENDLESS, in_order
from tidegate.engine.detector.instances import (
    Carry,
    Flow,
    Instances,
    Int16,
    Int32,
    Moment,
    concat,
    pending_of,
)
from tidegate.engine.values import Int64
from tidegate.rules.model import Context

Timeline = tuple[Int16, Int32, Int64]
"""Place, key code and row of what arrives, in the order that `chains` says."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The choice among matches of `count` event types in sequence, in one walk over all keys.

    Operands: the event types, every row of them. Carries per key, a slot for each event type but
    the last: in `chronicle` and `cumulative` the occurrences that are not used up and come after
    one of the event type before; in `recent` the greatest match of the event types so far (one per
    key); in `continuous` each initiator that has come so far, with what it took.
    """

    context: Context
    count: int
    span_micros: int | None
    carried_per_key_max: int = field(repr=False)

    @property
    def slots(self) -> int:
        return self.count - 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        line = _timeline([in_order(flow.instances, moment) for flow in operands])
        alike = np.zeros(self.count, dtype=np.int64)
        found, carried = self.over(line, carry, moment.time, alike, moment.rank, moment.keys)
        oldest = moment.watermark + 1 - self._span()
        carried = tuple(part.where(part.start >= oldest) for part in carried)
        check_carried(carried, self.carried_per_key_max)
        return Flow(found, pending_of(carried, operands)), carried

    def over(
        self, line: Timeline, carry: Carry, time: Int64, name: Int64, rank: Int64, keys: int
    ) -> tuple[Instances, Carry]:
        """What is found over a timeline, and what is carried; time[r] of its rows, key codes up to
        `keys`. Simultaneous rows stand in order of name[place], then rank[r]."""
        if self.context in (Context.RECENT, Context.CONTINUOUS):
            return self._matches(line, carry, time, keys)
        return self._queues(line, carry, time, name, rank, keys)

    def _span(self) -> int:
        return ENDLESS if self.span_micros is None else self.span_micros

    def _matches(
        self, line: Timeline, carry: Carry, time: Int64, keys: int
    ) -> tuple[Instances, Carry]:
        """Contexts that carry the matches begun."""
        begun = concat(carry)
        level = np.repeat(np.arange(self.count - 1, dtype=np.int16), [len(c) for c in carry])
        rows = np.full((len(begun), self.count - 1), -1, dtype=np.int64)
        rows[np.arange(self.count - 1) <= level[:, None]] = begun.row
        walk = chains.recent if self.context is Context.RECENT else chains.continuous
        key, found, kept_key, kept_level, kept = walk(
            self.count, *line, time, self._span(), begun.key, level, rows, keys
        )
        carried = [
            _matched(kept_key[at], kept[at, : p + 1], time)
            for p in range(self.count - 1)
            for at in [kept_level == p]
        ]
        return _matched(key, found, time), tuple(part.by_end() for part in carried)

    def _queues(
        self, line: Timeline, carry: Carry, time: Int64, name: Int64, rank: Int64, keys: int
    ) -> tuple[Instances, Carry]:
        """Contexts that carry the occurrences that are not used up."""
        stored = concat(carry)
        place, key, row = line
        if len(stored):
            before = np.repeat(np.arange(self.count - 1, dtype=np.int16), [len(c) for c in carry])
            place = np.concatenate([before, place])
            key, row = np.concatenate([stored.key, key]), np.concatenate([stored.row, row])
        whole = (self.count, len(stored), place, key, row, time)
        if self.context is Context.CHRONICLE:
            found_key, matches, left = chains.chronicle(*whole, self._span(), keys)
            found = _matched(found_key, matches, time)
        else:
            found_key, offsets, role, entry, left = chains.cumulative(
                *whole, name, rank, self._span(), keys
            )
            start, end = time[entry[offsets[:-1]]], time[entry[offsets[1:] - 1]]
            found = Instances(found_key, start, end, offsets, entry, role)
        carried = tuple(
            _matched(key[at], row[at, None], time, p)
            for p in range(self.count - 1)
            for at in [left[place[left] == p]]
        )
        return found, carried


def _timeline(arrivals: list[Instances]) -> Timeline:
    bounds = np.cumsum([0, *(len(part) for part in arrivals)])
    whole = concat(arrivals)
    found: Timeline = chains.timeline(bounds, whole.key, whole.end, whole.row)
    return found


def _matched(key: Int32, rows: Int64, time: Int64, role: int = 0) -> Instances:
    """Matches of one occurrence each of the event types from `role` on."""
    count = rows.shape[1]
    return Instances(
        key,
        time[rows[:, 0]],
        time[rows[:, -1]],
        np.arange(len(rows) + 1, dtype=np.int64) * count,
        rows.reshape(-1),
        np.tile(np.arange(role, role + count, dtype=np.int16), len(rows)),
    )
