"""`any(m, a*)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.engine.detect.events.graph.graph import Node, mixed
from tidegate.engine.detect.events.graph.shape import united
from tidegate.engine.detect.events.kernels.unions import greatest_of_each
from tidegate.engine.detect.events.occurrences.instances import (
    Carry,
    Flow,
    Moment,
    concat,
    pending_of,
)
from tidegate.rules.expressions import nodes as x

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class AnyRepeat:
    """`[[any(m, a*)]]` = { union of m distinct occurrences of a }. A composite a counts once per
    instant.

    `count` is m. Restricted: the greatest m, one of which ends now. Carries per key the greatest
    m - 1 so far. Bound: m - 1. Source: Snoop, `ANY(m, E*)`.
    """

    count: int
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        part = concat([carry[0], operands[0].instances])
        arrival, members, mark = greatest_of_each(
            self.count, len(carry[0]), part.columns, moment.ranks, moment.keys
        )
        found = united(part.key[arrival], part.end[arrival], members, part, moment)
        kept = part.where(mark)
        return Flow(found.by_end(), pending_of([kept], operands)), (kept,)


def node(e: x.AnyRepeat, build: Builder, horizon: int | None) -> Node:
    part = build.each(e.part, horizon)
    shape, point, apart = AnyRepeat(e.count), part.point and e.count == 1, mixed((part,))
    return build.make(e, shape, (part,), part.keys, horizon, point=point, apart=apart)
