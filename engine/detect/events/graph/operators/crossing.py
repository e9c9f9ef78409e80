"""`{over: {window: d, of: a, fire: p, rearm: q}}`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.graph.moving_aggregates import Condition, Windows, values_of_step
from tidegate.engine.detect.events.graph.search_limits import check_rows
from tidegate.engine.detect.events.graph.window_rows import check_window_rows
from tidegate.engine.detect.events.kernels import moving_windows as kernels
from tidegate.engine.detect.events.kernels.moving_windows import Spans
from tidegate.engine.detect.events.occurrences.instances import (
    Bools,
    Carry,
    Flow,
    Instances,
    Moment,
    bare,
    concat,
    pending_of,
)
from tidegate.rules.expressions import windows as w

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Crossing:
    """`[[{over: {window: d, of: a, fire: p, rearm: q}}]]` = the a's of (t - d, t] at each t at
    which p is true of them and the key is armed. That disarms it; a t at which q is true arms it,
    and does not fire. Each t at which a's enter or leave is asked. Without q: p is not true.

    Operand: every row of a. Carries in slot 0 the rows inside, in slot 1 for each key that is not
    armed the instant since when. Bound: the rows of the last d, and 1. Source: this engine, after
    the hysteresis of Schmitt's trigger.
    """

    span_micros: int
    fire: Condition
    rearm: Condition | None
    carried_per_key_max: int = field(repr=False)
    window_rows_max: int = field(repr=False)
    slots: int = 2

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        arrived = operands[0].instances
        rows = concat([carry[0], replace(arrived, start=arrived.end)])
        order, time, bounds = kernels.key_by_key(
            rows.key, rows.end, moment.rank, rows.row, moment.keys + 1
        )
        fresh = order >= len(carry[0])
        spans, inside = kernels.changes(bounds, time, fresh, self.span_micros, moment.watermark)
        windows = Windows(spans, order, values_of_step(rows.row, moment))
        fired, disarmed = self._crossings(spans, windows, carry[1])
        at = fired[np.argsort(spans.at[fired], kind="stable")]
        low, high, instants = spans.low[at], spans.high[at], spans.at[at]
        check_window_rows(
            lambda t: float((high - low)[instants <= t].sum()), moment, self.window_rows_max
        )
        moment.timers.fire(instants[time[high - 1] < instants])
        entries = kernels.entries_of(low, high, rows.row[order], rows.role[order])
        found = Instances(spans.key[at], time[low], instants, *entries)
        left = rows.take(order[inside]).by_end()
        check_rows(left, self.carried_per_key_max)
        return Flow(found, pending_of([left], operands)), (left, disarmed)

    def _crossings(
        self, spans: Spans, windows: Windows, disarmed: Instances
    ) -> tuple[Int64, Instances]:
        """Which windows fire, and the keys that are not armed after them."""
        codes = 1 + int(max(spans.key.max(initial=0), disarmed.key.max(initial=0)))
        off, since = np.zeros(codes, np.bool_), np.zeros(codes, np.int64)
        off[disarmed.key], since[disarmed.key] = True, disarmed.start
        fire = windows.true(self.fire)
        rearm: Bools = windows.true(self.rearm) if self.rearm else ~fire
        fired: Int64 = kernels.crossings(spans.key, fire, rearm, spans.high > spans.low, off)
        since[spans.key[fired]] = spans.at[fired]
        key = np.flatnonzero(off).astype(np.int32)
        return fired, bare(key, since[key], since[key]).by_end()

    def due(self, carry: Carry, /) -> Int64:
        return carry[0].end + self.span_micros


def node(e: w.Crossing, build: Builder, _: int | None) -> Node:
    part, limits = build.rows(e.part, None), build.settings
    events = tuple(sorted({*part.roles}))
    fire = Condition(e.fire.tree, events)
    rearm = Condition(e.rearm.tree, events) if e.rearm else None
    most = limits.carried_per_key_max, limits.window_rows_max
    shape = Crossing(e.length.micros, fire, rearm, *most)
    return build.make(e, shape, (part,), part.keys, None, timed=True)
