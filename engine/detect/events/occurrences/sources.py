"""The occurrences of one event type in a step: carried, arriving, added."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tidegate.engine.core.values import Batch, Int64
from tidegate.engine.detect.events.kernels import table_rows
from tidegate.engine.detect.events.occurrences.concatenation import both, no_parameters
from tidegate.engine.detect.events.occurrences.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Parts:
    """What n occurrences of a rule stand for (S8). Detection i begins at start[i]. Its constituents
    are the occurrences and ticks row[offsets[i]:offsets[i + 1]]; none is of a rule."""

    start: Int64
    offsets: Int64
    row: Int64

    def take(self, index: Int64) -> Parts:
        """Those of the detections at `index`."""
        sizes = np.diff(self.offsets)[index]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        entry = np.repeat(self.offsets[index] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return Parts(self.start[index], offsets, self.row[entry])

    def followed_by(self, more: Parts) -> Parts:
        """These detections, then those."""
        return Parts(
            np.concatenate([self.start, more.start]),
            np.concatenate([self.offsets, more.offsets[1:] + self.offsets[-1]]),
            np.concatenate([self.row, more.row]),
        )


@dataclass(frozen=True, slots=True)
class CarriedOccurrences:
    """Carried occurrences of one event type: n of them, in order of (time, number).

    number[n] tells an occurrence from the simultaneous ones of its type for as long as it is
    carried, and wherever; rank[n] orders it among them (S1). A rule's occurrences have `parts`.
    """

    batch: Batch
    number: Int64
    rank: Int64
    parts: Parts | None = None

    def __len__(self) -> int:
        return len(self.number)

    def places(self, time: Int64, number: Int64) -> Int64:
        """Where those with these times and numbers are; all are among them."""
        found: Int64 = table_rows.places(self.batch.time, self.number, time, number)
        return found


class Source:
    """One event type of a step. Its carried occurrences have rows from `base` on. Arrivals follow,
    then what is added while the step goes on."""

    def __init__(
        self, event: str, base: int, stored: Batch | None = None, line: Timeline | None = None,
        first: int = 0,
    ) -> None:  # fmt: skip
        """The arrivals of a timeline have rows from `first` on."""
        self.event = event
        self.base = base
        self.stored = stored
        self.carried = len(stored) if stored else 0
        self._line = line if line and event in line.counts else None
        self._first = first
        self._added: list[tuple[int, Batch]] = []

    def add(self, first: int, batch: Batch) -> None:
        """Adds occurrences, which have rows from `first` on."""
        self._added.append((first, batch))
        self.__dict__.pop("batch", None)

    @cached_property
    def arrivals(self) -> Int64:
        """The rows of what arrives."""
        if self._line is None:
            return np.empty(0, np.int64)
        return self._first + self._line.positions(self.event)

    @cached_property
    def batch(self) -> Batch:
        """All occurrences: carried, arriving, added."""
        arrived = [self._line.batch(self.event)] if self._line else []
        found = self.stored
        for batch in (*arrived, *(batch for _, batch in self._added)):
            found = both(found, batch) if found else batch
        none = np.empty(0, np.int64)
        return found or Batch(self.event, none, none, no_parameters(0))

    def __len__(self) -> int:
        arrived = self._line.counts[self.event] if self._line else 0
        return self.carried + arrived + sum(len(batch) for _, batch in self._added)

    def numbers(self, index: Int64) -> Int64:
        """What tells arrivals from the simultaneous ones of their type. `index`: their places in
        the batch, which ascend."""
        if self._line is None:
            return np.zeros_like(index)
        arrived, index = self._line.batch(self.event), index - self.carried
        if arrived.number is not None:
            return arrived.number[index]
        found: Int64 = table_rows.among_simultaneous(arrived.time, index)
        return found

    def rows(self) -> Int64:
        """The row of each occurrence of the batch."""
        added = [np.arange(first, first + len(batch)) for first, batch in self._added]
        carried = np.arange(self.base, self.base + self.carried)
        return np.concatenate([carried, self.arrivals, *added])
