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

BLOCK_ROWS = 1 << 16
"""Windows are asked some keys at a time, so that what is made of them fits into a cache."""


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
        values, armed = values_of_step(rows.row, moment), _Armed(carry[1], moment.keys + 1)
        inside, found = np.empty(len(order), np.bool_), list[Spans]()
        for codes in kernels.blocks(bounds, BLOCK_ROWS):
            ends = bounds[codes.start : codes.stop + 1]
            mine = slice(ends[0], ends[-1])
            spans, inside[mine] = kernels.changes(
                ends - ends[0], time[mine], fresh[mine], self.span_micros, moment.watermark
            )
            fired = self._fired(Windows(spans, order[mine], values), spans, armed, codes)
            found.append(spans.some(fired, codes.start, ends[0]))
        spans = Spans(*map(np.concatenate, zip(*found, strict=True)))
        spans = spans.some(np.argsort(spans.at, kind="stable"))
        key, instants, low, high = spans
        check_window_rows(
            lambda t: float((high - low)[instants <= t].sum()), moment, self.window_rows_max
        )
        moment.timers.fire(instants[time[high - 1] < instants])
        entries = kernels.entries_of(low, high, order, rows.row, rows.role)
        left = rows.take(order[inside]).by_end()
        check_rows(left, self.carried_per_key_max)
        flow = Flow(Instances(key, time[low], instants, *entries), pending_of([left], operands))
        return flow, (left, armed.disarmed())

    def _fired(self, windows: Windows, spans: Spans, armed: _Armed, codes: slice) -> Int64:
        """Which windows of a block fire; sets which of its keys are armed after them."""
        fire = windows.true(self.fire)
        rearm: Bools = windows.true(self.rearm) if self.rearm else ~fire
        filled, off = spans.high > spans.low, armed.off[codes]
        fired: Int64 = kernels.crossings(spans.key, fire, rearm, filled, off)
        armed.since[codes][spans.key[fired]] = spans.at[fired]
        return fired

    def due(self, carry: Carry, /) -> Int64:
        return carry[0].end + self.span_micros


class _Armed:
    """Which key codes are not armed, and since when."""

    def __init__(self, disarmed: Instances, codes: int) -> None:
        self.off, self.since = np.zeros(codes, np.bool_), np.zeros(codes, np.int64)
        self.off[disarmed.key], self.since[disarmed.key] = True, disarmed.start

    def disarmed(self) -> Instances:
        """As it is carried."""
        key = np.flatnonzero(self.off).astype(np.int32)
        return bare(key, self.since[key], self.since[key]).by_end()


def node(e: w.Crossing, build: Builder, _: int | None) -> Node:
    part, limits = build.rows(e.part, None), build.settings
    events = tuple(sorted({*part.roles}))
    fire = Condition(e.fire.tree, events)
    rearm = Condition(e.rearm.tree, events) if e.rearm else None
    most = limits.carried_per_key_max, limits.window_rows_max
    shape = Crossing(e.length.micros, fire, rearm, *most)
    return build.make(e, shape, (part,), part.keys, None, timed=True)
