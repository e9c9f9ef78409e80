"""The occurrences of one step: those carried, then those that arrive."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidegate.engine.core.event_names import EventKey, is_tick, shown_name
from tidegate.engine.core.values import Batch, Int64
from tidegate.engine.detect.events.kernels import table_rows
from tidegate.engine.detect.events.kernels.columns import TICK_RANK
from tidegate.engine.detect.events.occurrences.concatenation import no_parameters, stack
from tidegate.engine.detect.events.occurrences.instances import Int16
from tidegate.engine.detect.events.occurrences.sources import (
    CarriedOccurrences,
    Parts,
    Source,
)
from tidegate.engine.detect.events.occurrences.timeline import Timeline


class Ranking(Protocol):
    """The order of simultaneous occurrences of one type by their parameters (S1): `order`, or as
    that does."""

    def refine(self, groups: Int64, table: pa.Table, /) -> Int64: ...

    def greatest(self, groups: Int64, table: pa.Table, row: Int64, /) -> Int64: ...


_OWN_BITS = 40
_GLOBAL = -(2**62)
"""Ranks from here on order all occurrences of a step, not only simultaneous ones."""


class Occurrences:
    """The occurrences of a step: their event types by name; time, start and rank of each row.

    Rows are numbered in this order: carried occurrences, event type by event type; arrivals in the
    order of the timeline, from row `first` on; what is added while the step goes on.

    A rank orders simultaneous occurrences as S1 says: by start, name, parameters. start[r] is
    time[r] but for detections of rules (S8); where one of these starts earlier, ranks are negative
    and order all occurrences of the step. Ticks have `TICK_RANK`. Ticks and detections are added
    while the step goes on: `rank` changes then, and the order of what was there before does not.
    """

    def __init__(
        self, sources: dict[str, Source], timeline: Timeline, first: int, own: Int64
    ) -> None:
        """`sources` in order of their names; own[r] orders simultaneous ones of one type."""
        self.sources = sources
        self.parts: dict[str, Parts] = {}
        self.own = own
        self.first = first
        self._timeline = timeline
        order = [*sources]
        carried = [source for source in sources.values() if source.carried]
        self._bases = [source.base for source in carried] + [first]
        self._places = [order.index(source.event) for source in carried] + [-1]
        self._firsts = [0] * len(self._bases)
        self._arrivals = len(carried)  # which of the pieces the timeline is
        self._place_of_code = np.array(
            [order.index(e) if e in sources else 0 for e in timeline.events], dtype=np.int64
        )
        self._rank: Int64 | None = None
        self._start: Int64 | None = None
        self._time: Int64 | None = None

    @property
    def time(self) -> Int64:
        if self._time is None:
            carried = [s.stored.time for s in self.sources.values() if s.stored]
            self._time = np.concatenate([*carried, self._timeline.time])
        return self._time

    def instants(self, row: Int64) -> Int64:
        """The times of some rows."""
        alone = self._time is None and self.first == 0
        return self._timeline.time[row] if alone else self.time[row]

    @property
    def start(self) -> Int64:
        return self.time if self._start is None else self._start

    @property
    def rank(self) -> Int64:
        if self._rank is None:
            self._rank = self._ranked()
        return self._rank

    def add_ticks(self, event: str, time: Int64) -> Int64:
        """Adds ticks of one type; returns their rows. Coincident ticks are one, and a carried tick
        at the instant is that one."""
        if not len(time):
            return time
        if (time[1:] < time[:-1]).any():
            order = np.argsort(time)
            rows = np.empty_like(time)
            rows[order] = self.add_ticks(event, time[order])
            return rows
        first = np.ones(len(time), dtype=np.bool_)
        first[1:] = time[1:] != time[:-1]
        if not first.all():
            rows = self.add_ticks(event, time[first])
            return np.asarray(rows[np.cumsum(first) - 1])
        known = self.sources.get(event)
        if known is None or not len(known):
            return self._append_ticks(event, time)
        by_time = np.argsort(known.batch.time)
        place = np.searchsorted(known.batch.time, time, sorter=by_time)
        place = by_time[np.minimum(place, len(by_time) - 1)]
        rows = known.rows()[place]
        new = known.batch.time[place] != time
        rows[new] = self._append_ticks(event, time[new])
        return rows

    def _append_ticks(self, event: str, time: Int64) -> Int64:
        batch = Batch("tick", time, np.arange(len(time)), no_parameters(len(time)))
        return self._append(event, batch, time, np.zeros(len(time), dtype=np.int64))

    def add_detections(self, rule: str, end: Int64, own: Int64, parts: Parts) -> Int64:
        """Adds a rule's detections, in order of end, as occurrences; returns their rows."""
        batch = Batch(rule, end, np.arange(len(end)), no_parameters(len(end)))
        old = self.parts.get(rule)
        self.parts[rule] = old.followed_by(parts) if old else parts
        return self._append(rule, batch, parts.start, own)

    def set_carried(self, rule: str, parts: Parts) -> None:
        """Sets what a rule's carried occurrences stand for."""
        self.parts[rule] = parts
        self._start = self.start.copy()
        self._start[self.sources[rule].rows()] = parts.start
        self._rank = None

    def places(self) -> Int64:
        """For each row the number of its event type."""
        return self._of_type(np.arange(len(self.sources)))

    def _of_type(self, value: Int64) -> Int64:
        """For each row the value of its event type."""
        value = np.append(value, 0)  # there may be no event type
        counts = [b - a for a, b in pairwise([*self._bases, len(self.own)])]
        found = np.repeat(value[self._places], counts)
        code = self._timeline.code
        found[self.first : self.first + len(code)] = value[self._place_of_code][code]
        return found

    def place_of(self, row: Int64) -> Int64:
        """For each row which of `sources` it belongs to."""
        return self._located(row, np.empty(0, np.int64))[0].astype(np.int64)

    def index_of(self, row: Int64) -> Int64:
        """For each row its place in its batch."""
        return self.located(row)[1]

    def located(self, row: Int64) -> tuple[Int16, Int64]:
        """For each row which of `sources` it belongs to, and its place in that one's batch."""
        return self._located(row, self._timeline.index if len(row) else row)

    def shown(self, row: Int64) -> tuple[Int16, Int64, dict[str, Batch]]:
        """For each row which of `sources` it belongs to, its place in that one's batch, and the
        batches by name. Event types of one table share a batch: its rows need no telling apart."""
        log = self._timeline.log
        if log is None or self.first:
            return *self.located(row), {event: s.batch for event, s in self.sources.items()}
        known = self._timeline.counts
        whole = log.whole
        batches = {e: whole if e in known else s.batch for e, s in self.sources.items()}
        return *self._located(row, np.empty(0, np.int64)), batches

    def _located(self, row: Int64, index: Int64) -> tuple[Int16, Int64]:
        line = self._timeline
        pieces = table_rows.Pieces(
            np.array(self._bases, dtype=np.int64),
            np.array(self._places, dtype=np.int64),
            np.array(self._firsts, dtype=np.int64),
            self._arrivals,
        )
        known = [self.sources.get(event) for event in line.events]
        carried = np.array([source.carried if source else 0 for source in known], dtype=np.int64)
        found: tuple[Int16, Int64] = table_rows.located(
            row, pieces, line.code, index, self._place_of_code, carried
        )
        return found

    def _append(self, event: str, batch: Batch, start: Int64, own: Int64) -> Int64:
        first, count = len(self.own), len(batch)
        source = self.sources.get(event)
        if source is None:
            source = self.sources[event] = Source(event, first)
        self._bases.append(first)
        self._firsts.append(len(source))
        self._places.append([*self.sources].index(event))
        source.add(first, batch)
        if self._start is not None or start is not batch.time:
            self._start = np.concatenate([self.start, start])
        self._time = np.concatenate([self.time, batch.time])
        self.own = np.concatenate([self.own, own])
        self._rank = None
        return np.arange(first, first + count)

    def _ranked(self) -> Int64:
        """The ranks of all rows."""
        names = [shown_name(event) for event in self.sources]
        number = np.array([names.index(name) for name in names], dtype=np.int64)
        if self._start is None or (self._start == self.time).all():
            rank = self._of_type(number << _OWN_BITS) + self.own
        else:
            place = self._of_type(number)
            columns = (self.own, place, self.time, self.start)
            order = np.lexsort(columns)
            differs = np.logical_or.reduce([np.diff(column[order]) != 0 for column in columns])
            rank = np.empty(len(order), dtype=np.int64)
            rank[order] = _GLOBAL + np.concatenate([[0], np.cumsum(differs)])
        for event, source in self.sources.items():
            if is_tick(event):
                rank[source.rows()] = TICK_RANK
        return rank


def number(
    timeline: Timeline,
    carried: Mapping[str, CarriedOccurrences],
    rules: Collection[str],
    tied: Mapping[str, Int64],
    ranking: Ranking,
) -> Occurrences:
    """Number the occurrences of a step. `rules`: those that are used in it; their detections will
    be added.

    tied[event] are the positions of arrivals that are simultaneous with another one of their type
    and key, where more than the greatest of them counts. Only these are ranked by their parameters,
    among all that have their name.
    """
    first = sum(map(len, carried.values()))
    own = np.zeros(first + len(timeline), dtype=np.int64)
    sources: dict[str, Source] = {}
    base = 0
    for event in in_order({*carried, *timeline.counts, *rules}):
        old = carried.get(event)
        sources[event] = Source(event, base, old.batch if old else None, timeline, first)
        if old:
            own[base : base + len(old)] = old.rank
            base += len(old)
    for _, alike in groupby((event for event in sources if event in tied), shown_name):
        events = [*alike]
        position = np.concatenate([tied[event] for event in events])
        table = stack(_parameters(timeline, event, tied[event]) for event in events)
        own[first + position] = ranking.refine(timeline.time[position], table)
    found = Occurrences(sources, timeline, first, own)
    detected = {*rules, *(event for event, old in carried.items() if old.parts is not None)}
    for _, alike in groupby((event for event in sources if event not in detected), shown_name):
        _rank_together(found, [event for event in alike if not is_tick(event)], ranking)
    for event in rules:
        if event in carried and (parts := carried[event].parts) is not None:
            found.set_carried(event, parts)
    return found


def _rank_together(found: Occurrences, events: Sequence[str], ranking: Ranking) -> None:
    """Ranks occurrences of one name that rules see by several clocks: each event type was ranked
    when its occurrences arrived, among others. Only instants of several of them are looked at.

    Example: two c's at 10, and a rule that waits 2 s for late rows. It sees them as `c by 2000`,
    when another rule has carried the c's on for 2 s.
    """
    if len(events) < 2 or all(EventKey.of(event).behind is None for event in events):
        return
    rows = [found.sources[event].rows() for event in events]
    each = np.concatenate([np.unique(found.time[row]) for row in rows])
    instants, count = np.unique(each, return_counts=True)
    index = [np.flatnonzero(np.isin(found.time[row], instants[count > 1])) for row in rows]
    row = np.concatenate([own[at] for own, at in zip(rows, index, strict=True)])
    if len(row):
        batches = (found.sources[e].batch.take(at) for e, at in zip(events, index, strict=True))
        table = stack(batch.table.take(batch.row) for batch in batches)
        found.own[row] = ranking.refine(found.time[row], table)


def _parameters(timeline: Timeline, event: str, position: Int64) -> pa.Table:
    """The rows of the arrivals of one event type at some positions."""
    return timeline.table(event).take(timeline.rows(position, event))


def in_order(events: Iterable[str]) -> list[str]:
    """Event types in the order in which their carried occurrences are numbered."""
    return sorted(events, key=lambda event: (is_tick(event), shown_name(event), event))
