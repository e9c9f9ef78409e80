"""The timers of a step: what happens at an instant though nothing arrives."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from tidegate.engine.core.instants import ceil_watermark
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.occurrences.instances import Carry, Counting


@runtime_checkable
class Timed(Protocol):
    """An operator that carries timers."""

    def due(self, carry: Carry, /) -> Int64:
        """The next timer of each carried instance that has one. The operator wants to be stepped at
        these instants."""
        ...


class FloodError(Exception):
    """More timers are due than a step, or a bucket (G8), may fire. Up to `reached` there are not
    more than that."""

    def __init__(self, reached: int) -> None:
        super().__init__(reached)
        self.reached = reached


class Timers:
    """Counts the timers that fire in a step; no more than `limit` may (None: any number), and those
    of one millisecond together."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self._fired = [np.empty(0, np.int64)]

    def fire(self, instants: Int64) -> None:
        """Note timers of one operator."""
        self._fired.append(instants)

    def reached(self, watermark: int) -> int:
        """How far a step up to `watermark` may go: to the end of the millisecond in which the last
        one of `limit` timers fires."""
        if self.limit is None or sum(map(len, self._fired)) <= self.limit:
            return watermark
        fired = np.concatenate(self._fired)
        last = int(np.partition(fired, self.limit - 1)[self.limit - 1])
        return min(watermark, ceil_watermark(last))


class Behind:
    """The timers of rules that run behind: each counts where the step's watermark passes it."""

    def __init__(self, timers: Counting, micros: int) -> None:
        self.limit = timers.limit
        self._timers = timers
        self._micros = micros

    def fire(self, instants: Int64) -> None:
        """Note timers of one operator."""
        self._timers.fire(instants + self._micros)
