"""The occurrences of one event type in a step: carried, arriving, added."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import Batch, Int64
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
class CarriedParts:
    """`Parts` as they are carried: constituent e has serial[e] of event type event[e]."""

    start: Int64
    offsets: Int64
    event: pa.StringArray
    serial: Int64


@dataclass(frozen=True, slots=True)
class CarriedOccurrences:
    """Carried occurrences of one event type: n of them, in order of `serial`.

    serial[n] names an occurrence for as long as it is carried; rank[n] orders it among the
    simultaneous ones of its type (S1). A rule's occurrences have `parts`.
    """

    batch: Batch
    serial: Int64
    rank: Int64
    next_serial: int
    parts: CarriedParts | None = None


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
        self.carried = len(stored) if stored else 0
        self.stored = stored
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

    def rows(self) -> Int64:
        """The row of each occurrence of the batch."""
        added = [np.arange(first, first + len(batch)) for first, batch in self._added]
        carried = np.arange(self.base, self.base + self.carried)
        return np.concatenate([carried, self.arrivals, *added])
