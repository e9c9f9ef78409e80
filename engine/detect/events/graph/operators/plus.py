"""`a + [d]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.calendar import add_each
from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.graph.shape import greatest
from tidegate.engine.detect.events.occurrences.instances import (
    Carry,
    Flow,
    Moment,
    bare,
    concat,
    no_pending,
)
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.nodes import Duration

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Plus:
    """`[[a + [d]]]` = { the point e(a) + d }, without the occurrences of a. Months count in `zone`
    (S11).

    Carries the points still to come, as bare intervals. Bound: the instants of a within d.
    Source: Snoop, relative temporal events.
    """

    duration: Duration
    zone: str
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        base = operands[0].instances
        point = add_each(base.end, self.duration, self.zone)
        points = greatest(concat([carry[0], bare(base.key, point, point)]).by_end(), moment)
        due = points.end <= moment.watermark
        moment.timers.fire(points.end[due])
        return Flow(points.where(due), no_pending()), (points.where(np.logical_not(due)),)

    def due(self, carry: Carry, /) -> Int64:
        return carry[0].end


def node(e: x.Plus, build: Builder, _: int | None) -> Node:
    base = build.operand(e.base, None)
    shape = Plus(e.duration, build.zone_of(e.duration))
    return build.make(e, shape, (base,), base.keys, None, point=True, timed=True)
