"""`a within d`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.engine.detect.events.graph.calendar import at_most
from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.occurrences.instances import Carry, Flow, Moment
from tidegate.rules.algebra.transformation import longest_micros
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.nodes import Duration

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Within:
    """`[[a within d]]` = { a : e(a) - s(a) <= d }; months count in `zone` from the start (S11).

    Carries nothing: bound 0. The nodes of a forget instances older than d. Pending starts older
    than d are left out, so `b ; (a within d)` keeps no more than the queue of Carlson & Lisper's
    Figure 4. Source: Carlson & Lisper, temporal restriction.
    """

    duration: Duration
    zone: str
    slots: int = 0

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        part = operands[0].instances
        mark = at_most(part.start, part.end, self.duration, self.zone)
        oldest = moment.watermark + 1 - longest_micros(self.duration)
        return Flow(part.where(mark), operands[0].pending.since(oldest)), carry


def node(e: x.Within, build: Builder, horizon: int | None) -> Node:
    bound = longest_micros(e.duration)
    part = build.passed(e.part, bound if horizon is None else min(bound, horizon))
    shape = Within(e.duration, build.zone_of(e.duration))
    return build.make(e, shape, (part,), part.keys, horizon, point=part.point)
