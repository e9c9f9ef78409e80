"""The ticks of sliding windows: when they end, and which of them hold a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph import grids
from tidegate.engine.detect.events.graph.search_limits import LimitError
from tidegate.rules.expressions.nodes import Duration
from tidegate.rules.expressions.windows import calendar

POINTS_MAX = 100_000
"""Midnights around the rows of one step: 270 years of days."""


class Ticks(Protocol):
    """Ticks by number. Window n is [start of n, tick n)."""

    def after(self, time: Int64) -> Int64:
        """For each instant the number of the first tick later than it."""
        ...

    def last_over(self, time: Int64) -> Int64:
        """For each instant the number of the last tick whose window it is in, or is before."""
        ...

    def up_to(self, watermark: int) -> int:
        """The number of the last tick up to a watermark."""
        ...

    def instants(self, number: Int64) -> Int64: ...


@dataclass(frozen=True, slots=True)
class FixedTicks:
    """Multiples of `every` since the epoch. Windows have `length`; both in microseconds.

    >>> ticks = FixedTicks(every=10, length=15)
    >>> ticks.after(np.array([9, 10])), ticks.last_over(np.array([9, 15])), ticks.up_to(29)
    (array([1, 2]), array([2, 3]), 2)
    """

    every: int
    length: int

    def after(self, time: Int64) -> Int64:
        return time // self.every + 1

    def last_over(self, time: Int64) -> Int64:
        return (time + self.length) // self.every

    def up_to(self, watermark: int) -> int:
        return watermark // self.every

    def instants(self, number: Int64) -> Int64:
        return number * self.every


@dataclass(frozen=True, slots=True)
class LocalTicks:
    """Local midnights around some rows, ascending, and the starts of their windows."""

    at: Int64
    start: Int64

    def after(self, time: Int64) -> Int64:
        return np.searchsorted(self.at, time, side="right")

    def last_over(self, time: Int64) -> Int64:
        return np.searchsorted(self.start, time, side="right") - 1

    def up_to(self, watermark: int) -> int:
        return int(np.searchsorted(self.at, watermark, side="right")) - 1

    def instants(self, number: Int64) -> Int64:
        return self.at[number]


def ticks_over(time: Int64, length: Duration, every: Duration, zone: str) -> Ticks:
    """The ticks whose windows may hold rows at these instants, in a rulebook's zone."""
    if not calendar(every):
        return FixedTicks(every.micros, length.micros)
    grid, found, start = grids.grid(every, zone), list[int](), list[int]()
    rows = np.unique(time) if len(time) else np.zeros(1, np.int64)
    row = 0
    while row < len(rows):  # a tick for each window with rows, none between rows far apart
        if len(found) == POINTS_MAX:
            raise LimitError(
                "ticks",
                f"rows of one step are in more than {POINTS_MAX:,} windows of local days or months",
                "make the window shorter, or `every` longer",
            )
        at = _after(grid, max([int(rows[row]), *found[-1:]]))
        found.append(at)
        start.append(grids.back(at, length, zone) if calendar(length) else at - length.micros)
        row = int(np.searchsorted(rows, start[-1]))
    return LocalTicks(np.array(found), np.array(start))


def _after(grid: grids.Grid, instant: int) -> int:
    return int(grid.after(np.array([instant]))[0])
