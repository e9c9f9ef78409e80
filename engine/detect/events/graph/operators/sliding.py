"""`{window: d, every: e, of: a}`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.graph.search_limits import check_rows
from tidegate.engine.detect.events.graph.tick_grid import Ticks, ticks_over
from tidegate.engine.detect.events.graph.window_rows import check_window_rows, check_windows
from tidegate.engine.detect.events.kernels import moving_windows as kernels
from tidegate.engine.detect.events.kernels.moving_windows import Spans
from tidegate.engine.detect.events.occurrences.instances import (
    Carry,
    Flow,
    Instances,
    Moment,
    concat,
    pending_of,
)
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.nodes import Duration

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder

_COUNTED = 16  # ticks a window: so far counting is cheaper than sorting


@dataclass(frozen=True, slots=True)
class Sliding:
    """`[[{window: d, every: e, of: a}]]` = for each tick t of e the union of the a's in [t - d, t),
    if there are any. It ends at t; nothing is consumed.

    Operand: every row of a. Days and months count in `zone`. Carries, each once, the rows that are
    in the window of a tick still to come: as [instant of the row, last tick that is through].
    Bound: the rows of the last d. Source: this engine.
    """

    length: Duration
    every: Duration
    zone: str
    carried_per_key_max: int = field(repr=False)
    window_rows_max: int = field(repr=False)
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        arrived = operands[0].instances
        rows = concat([carry[0], replace(arrived, start=arrived.end)])
        order, time, bounds = kernels.key_by_key(
            rows.key, rows.start, moment.rank, rows.row, moment.keys + 1
        )
        through = rows.end[order] if len(carry[0]) else time
        ticks = self._ticks(time)
        begin, end = ticks.after(through), ticks.last_over(time)
        until = ticks.up_to(moment.watermark)

        def ended(watermark: int) -> float:
            return float(kernels.windows_at_ticks(bounds, begin, end, ticks.up_to(watermark)))

        def held(watermark: int) -> float:
            return float(kernels.rows_at_ticks(begin, end, ticks.up_to(watermark)))

        check_windows(ended, moment)
        check_window_rows(held, moment, self.window_rows_max)
        spans = kernels.held_at_ticks(bounds, begin, end, until)
        numbers, spans = _numbered(spans)
        count, key, start, *entries = kernels.by_tick(
            spans, len(numbers), time, rows.row[order], rows.role[order]
        )
        instants = np.repeat(ticks.instants(numbers), count)
        moment.timers.fire(instants)
        found = Instances(key, start, instants, *entries)
        kept = np.flatnonzero(end > until)
        left = rows.take(order[kept])
        passed = begin[kept] <= until
        if passed.any():
            last = ticks.instants(np.full(len(kept), until))
            left = replace(left, end=np.where(passed, last, left.end))
        left = left.by_end()
        check_rows(left, self.carried_per_key_max)
        return Flow(found, pending_of([left], operands)), (left,)

    def due(self, carry: Carry, /) -> Int64:
        ticks = self._ticks(carry[0].start)
        return ticks.instants(ticks.after(carry[0].end))

    def _ticks(self, time: Int64) -> Ticks:
        return ticks_over(time, self.length, self.every, self.zone)


def _numbered(spans: Spans) -> tuple[Int64, Spans]:
    """The ticks of windows, and the windows with the places of their ticks among these. All ticks
    from the first to the last count, but where there are few windows."""
    first, last = (int(spans.at.min()), int(spans.at.max())) if len(spans.at) else (0, 0)
    if last - first < _COUNTED * len(spans.at):
        return np.arange(first, last + 1), spans._replace(at=spans.at - first)
    numbers, places = np.unique(spans.at, return_inverse=True)
    return numbers, spans._replace(at=places)


def node(e: w.Sliding, build: Builder, _: int | None) -> Node:
    part, limits = build.rows(e.part, None), build.settings
    zone = build.zone if w.calendar(e.every) else ""
    most = limits.carried_per_key_max, limits.window_rows_max
    shape = Sliding(e.length, e.every, zone, *most)
    return build.make(e, shape, (part,), part.keys, None, timed=True)
