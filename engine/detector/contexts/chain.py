"""`a ; b ; c ..` over distinct event types of one key, in any context but `restricted`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.detector.contexts import chains
from engine.detector.contexts.limits import check_carried
from engine.detector.instances import (
    Bools,
    Carry,
    Flow,
    Instances,
    Int16,
    Int32,
    Moment,
    concat,
    pending_of,
)
from engine.values import Int64
from rules import expression as x
from rules.model import Context

CONTEXTS = frozenset({Context.RECENT, Context.CHRONICLE, Context.CONTINUOUS, Context.CUMULATIVE})
ENDLESS = 2**62


def event_types(e: x.Expression) -> tuple[list[str], int | None] | None:
    """The event types of such a sequence and its span, microseconds; None for anything else."""
    match e:
        case x.Labelled(part=part):
            return event_types(part)
        case x.Within(part=part, duration=duration) if not duration.months:
            found = event_types(part)
            if found is None or found[1] is not None:
                return None
            return found[0], duration.micros
    names = _sequence(e)
    return (names, None) if names and len({*names}) == len(names) > 1 else None


def _sequence(e: x.Expression) -> list[str]:
    """The event types of a sequence, however it is grouped; none if there is anything else."""
    match e:
        case x.Name(name=name):
            return [name]
        case x.Labelled(part=part):
            return _sequence(part)
        case x.Seq(first=first, then=then):
            left, right = _sequence(first), _sequence(then)
            return [*left, *right] if left and right else []
    return []


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
        arrivals = [_in_order(flow.instances, moment) for flow in operands]
        if self.context in (Context.RECENT, Context.CONTINUOUS):
            found, carried = self._matches(arrivals, carry, moment)
        else:
            found, carried = self._queues(arrivals, carry, moment)
        check_carried(carried, self.carried_per_key_max)
        return Flow(found, pending_of(carried, operands)), carried

    def _span(self) -> int:
        return ENDLESS if self.span_micros is None else self.span_micros

    def _matches(
        self, arrivals: list[Instances], carry: Carry, moment: Moment
    ) -> tuple[Instances, Carry]:
        """Contexts that carry the matches begun."""
        begun = concat(carry)
        level = np.repeat(np.arange(self.count - 1, dtype=np.int16), [len(c) for c in carry])
        rows = np.full((len(begun), self.count - 1), -1, dtype=np.int64)
        rows[np.arange(self.count - 1) <= level[:, None]] = begun.row
        walk = chains.recent if self.context is Context.RECENT else chains.continuous
        key, found, kept_key, kept_level, kept = walk(
            self.count, *_timeline(arrivals), moment.time, self._span(),
            begun.key, level, rows, moment.keys,
        )  # fmt: skip
        carried = [
            _matched(kept_key[at], kept[at, : p + 1], moment.time)
            for p in range(self.count - 1)
            for at in [kept_level == p]
        ]
        return _matched(key, found, moment.time), tuple(part.by_end() for part in carried)

    def _queues(
        self, arrivals: list[Instances], carry: Carry, moment: Moment
    ) -> tuple[Instances, Carry]:
        """Contexts that carry the occurrences that are not used up."""
        stored = concat(carry)
        place = np.repeat(np.arange(self.count - 1, dtype=np.int16), [len(c) for c in carry])
        arriving = _timeline(arrivals)
        places = np.concatenate([place, arriving[0]])
        keys = np.concatenate([stored.key, arriving[1]])
        rows = np.concatenate([stored.row, arriving[2]])
        line = (self.count, len(stored), places, keys, rows, moment.time, self._span(), moment.keys)
        if self.context is Context.CHRONICLE:
            key, matches, left = chains.chronicle(*line)
            found = _matched(key, matches, moment.time)
        else:
            key, offsets, entry_place, entry_row, left = chains.cumulative(*line)
            found = _unions(key, offsets, entry_place, entry_row, moment)
        carried = tuple(
            _matched(keys[at], rows[at, None], moment.time, p)
            for p in range(self.count - 1)
            for at in [left[places[left] == p]]
        )
        return found, carried


def _timeline(arrivals: list[Instances]) -> tuple[Int16, Int32, Int64]:
    bounds = np.cumsum([0, *(len(part) for part in arrivals)])
    whole = concat(arrivals)
    found: tuple[Int16, Int32, Int64] = chains.timeline(bounds, whole.key, whole.end, whole.row)
    return found


def _in_order(part: Instances, moment: Moment) -> Instances:
    """Occurrences in order of (time, rank)."""
    rank = moment.rank[part.row]
    swapped: Bools = (part.end[1:] == part.end[:-1]) & (rank[1:] < rank[:-1])
    return part.take(np.lexsort((rank, part.end))) if swapped.any() else part


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


def _unions(key: Int32, offsets: Int64, place: Int16, row: Int64, moment: Moment) -> Instances:
    """Unions of matches, their entries in order."""
    owner = np.repeat(np.arange(len(key)), np.diff(offsets))
    order = np.lexsort((row, moment.rank[row], moment.time[row], owner))
    row, place = row[order], place[order]
    start, end = moment.time[row[offsets[:-1]]], moment.time[row[offsets[1:] - 1]]
    return Instances(key, start, end, offsets, row, place)
