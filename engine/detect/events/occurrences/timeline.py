"""The arrivals of a step: of all event types, in order of time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidegate.engine.core.event_names import shown_name
from tidegate.engine.core.values import Batch, Int64
from tidegate.engine.detect.events.kernels import table_rows
from tidegate.engine.detect.events.occurrences.instances import Int32
from tidegate.engine.detect.events.occurrences.occurrence_table import OccurrenceTable, frozen


class Timeline:
    """n arrivals in order of time: of a bucket (`of_batches`) or of a whole table (`of_table`).

    Arrival i is of the event type events[code[i]] and happens at time[i]; the simultaneous ones of
    one type stand in the order of its batch.

    Example: batches a at 1, 4 and b at 2, 4 give the events (a, b), the codes 0 1 0 1 and the
    times 1 2 4 4; the positions of b are 1 and 3.
    """

    def __init__(
        self,
        events: tuple[str, ...],
        code: Int32,
        time: Int64,
        batches: Mapping[str, Batch],
        log: OccurrenceTable | None = None,
    ) -> None:
        self.events = events
        self.code = code
        self.time = frozen(time)
        self.log = log
        """The table whose rows these are, row by row."""
        self._batches = dict(batches)

    def __len__(self) -> int:
        return len(self.time)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """The number of arrivals of each event type that has any."""
        if self.log is None:
            return {event: len(batch) for event, batch in self._batches.items() if len(batch)}
        counts = table_rows.counts(self.code, len(self.events)).tolist()
        return {event: n for event, n in zip(self.events, counts, strict=True) if n}

    @property
    def firsts(self) -> Mapping[str, int]:
        """When the first arrival of each event type happens."""
        place = table_rows.first_places(self.code, len(self.events)).tolist()
        return {e: int(self.time[n]) for e, n in zip(self.events, place, strict=True) if n >= 0}

    @cached_property
    def simultaneous(self) -> Int64:
        """The positions of arrivals that share their instant with another."""
        same = self.time[1:] == self.time[:-1]
        return np.flatnonzero(np.append(same, False) | np.append(False, same))

    @cached_property
    def simultaneous_max(self) -> int:
        """The largest number of arrivals at one instant."""
        time = self.time[self.simultaneous]
        return int(table_rows.longest_run(time)) if len(time) else 1

    def until(self, instant: int) -> Timeline:
        """The arrivals up to an instant."""
        batches = {event: self.batch(event) for event in self.counts}
        return of_batches({event: batch.until(instant) for event, batch in batches.items()})

    def batch(self, event: str) -> Batch:
        """The arrivals of one event type."""
        if event not in self._batches and self.log:
            positions = self.positions(event)
            self._batches[event] = self.log.batch(event, positions)
        return self._batches[event]

    def table(self, event: str) -> pa.Table:
        """The table that the batch of an event type reads."""
        return self.log.table if self.log else self._batches[event].table

    def positions(self, event: str) -> Int64:
        """The positions of the arrivals of one event type, in the order of its batch."""
        place, bounds = self._split
        number = self.events.index(event)
        return place[bounds[number] : bounds[number + 1]]

    def rows(self, positions: Int64, event: str) -> Int64:
        """The rows of the table for the arrivals of one event type at some positions."""
        if self.log:
            return self.log.rows(positions)
        return self._batches[event].row[self.index[positions]]

    def of_event(self, positions: Int64, event: str) -> Int64:
        """The positions, among some, that hold an arrival of this event type."""
        mark = self.code[positions] == self.events.index(event)
        return positions if mark.all() else positions[mark]

    @cached_property
    def index(self) -> Int64:
        """For each arrival its place in the batch of its type."""
        place, bounds = self._split
        found: Int64 = table_rows.inverse(place, bounds)
        return found

    @cached_property
    def _split(self) -> tuple[Int64, Int64]:
        """The positions of one event type after the other, and where each type begins."""
        found: tuple[Int64, Int64] = table_rows.split(self.code, len(self.events))
        return found


def of_batches(batches: Mapping[str, Batch]) -> Timeline:
    """The arrivals of several event types, each in order of time, as one."""
    events = sorted(batches, key=lambda e: (shown_name(e), e))
    none = np.empty(0, np.int64), np.empty(0, np.int32)
    runs = [
        (batches[event].time, np.full(len(batches[event]), number, dtype=np.int32))
        for number, event in enumerate(events)
    ]
    while len(runs) > 1:
        pairs = [
            table_rows.merged(frozen(a), a_code, frozen(b), b_code)
            for (a, a_code), (b, b_code) in zip(runs[::2], runs[1::2], strict=False)
        ]
        runs = pairs + runs[2 * len(pairs) :]
    time, code = runs[0] if runs else none
    return Timeline(tuple(events), code, time, batches)


def of_table(log: OccurrenceTable) -> Timeline:
    """The rows of a table of occurrences."""
    return Timeline(log.names, log.code, log.time, {}, log)
