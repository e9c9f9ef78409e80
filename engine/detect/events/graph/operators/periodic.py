"""`P(a, [d], c)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.core.event_names import tick_type
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.calendar import add_each, following, multiples
from tidegate.engine.detect.events.graph.graph import Node, mixed
from tidegate.engine.detect.events.graph.shape import greatest
from tidegate.engine.detect.events.kernels import table_rows
from tidegate.engine.detect.events.kernels.openers import closes as closes_of_each
from tidegate.engine.detect.events.occurrences.instances import (
    Carry,
    Flow,
    Instances,
    Moment,
    bare,
    concat,
    no_pending,
    points,
)
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.nodes import Duration

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Periodic:
    """`[[P(a, [d], c)]]` = { the point e(a) + k * d, k >= 1 : the window of a is open }, a tick. A
    window closes at e(c) of the first c with s(c) > e(a), or `own` after e(a). Coincident ticks are
    one (S6).

    Operands: a, and c unless there is an `own` terminator. `role` is that of the ticks, `ticks`
    their type. Months count in `zone` (S11). Carries every a whose window is open, as [e(a), its
    last tick]. Bound: the a's of open windows. Source: Snoop, `P`.
    """

    period: Duration
    own: Duration | None
    zone: str
    role: int
    ticks: str
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        opener = operands[0].instances
        first = concat([carry[0], bare(opener.key, opener.end, opener.end)])
        close = closes(first, operands, self.own, self.zone, moment)
        still = np.asarray(close > moment.watermark)
        latest = moment.watermark if self.own is not None else min(moment.watermark, moment.last)
        until = np.where(still, latest, close)
        counts, ticks = multiples(
            first.start, first.end, until, self.period, self.zone, moment.timers.limit
        )
        moment.timers.fire(ticks)
        last = np.where(counts > 0, np.append(ticks, 0)[np.cumsum(counts) - 1], first.end)
        order = np.argsort(ticks)
        ticks = ticks[order]
        found = greatest(bare(np.repeat(first.key, counts)[order], ticks, ticks), moment)
        rows = moment.numbering.add_ticks(self.ticks, found.end)
        found = points(found.key, found.end, rows).shifted(self.role)
        return Flow(found, no_pending()), (replace(first, end=last).where(still).by_end(),)

    def due(self, carry: Carry, /) -> Int64:
        first = carry[0]
        tick = following(first.start, first.end, self.period, self.zone)
        if self.own is None:
            return tick
        return np.minimum(tick, add_each(first.start, self.own, self.zone))


def closes(
    first: Instances, operands: Sequence[Flow], own: Duration | None, zone: str, moment: Moment
) -> Int64:
    """The instant at which the window of each opener closes; `LAST` if nothing closes it in this
    step. The start of an opener in `first` is the instant at which its window opens."""
    if own is not None:
        return add_each(first.start, own, zone)
    c = operands[1].instances
    index, bounds = table_rows.split(c.key, moment.keys + 1)
    found: Int64 = closes_of_each(first.key, first.start, c.columns, index, bounds)
    return found


def node(e: x.Periodic, build: Builder, _: int | None) -> Node:
    own = e.closer.duration if isinstance(e.closer, x.Own) else None
    found = [build.operand(part, None) for part in e.operands() if not isinstance(part, x.Own)]
    operands = build.alike(found, None)
    a, ticks = operands[0], tick_type(e)
    role, zone = sum(len(o.roles) for o in operands), build.zone_of(e.period, own)
    shape, apart = Periodic(e.period, own, zone, role, ticks), mixed((a,), operands[-1])
    return build.make(
        e, shape, operands, a.keys, None, point=True, timed=True, apart=apart, ticks=ticks
    )
