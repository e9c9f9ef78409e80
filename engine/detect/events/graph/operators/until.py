"""`a ; [d]` and `not(b)[a, [d]]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.calendar import add_each
from tidegate.engine.detect.events.graph.graph import Node, first_roles
from tidegate.engine.detect.events.graph.shape import greatest
from tidegate.engine.detect.events.kernels.joins import latest_start
from tidegate.engine.detect.events.occurrences.instances import (
    Carry,
    Flow,
    Moment,
    concat,
    pending_of,
)
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.nodes import Duration

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Until:
    """`[[not(b)[a, [d]]]]` = { a with the point e(a) + d : no b with e(a) < s(b) and
    e(b) <= e(a) + d }; `[[a ; [d]]]` the same without any b.

    Operands: b, if `lacking`, and a. `role` is the first role of a. Months count in `zone` (S11).
    `all_rows`: every instance of an instant counts, not only the greatest. Carries the a's whose
    time has not run out and that no b has cancelled. Bound: the a's within d. Source: Snoop, `NOT`
    and `;` with a relative event as terminator.
    """

    duration: Duration
    zone: str
    lacking: bool
    role: int
    all_rows: bool
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        opener = operands[-1]
        first = concat([carry[0], opener.instances.shifted(self.role)])
        point = add_each(first.end, self.duration, self.zone)
        if (point[1:] < point[:-1]).any():  # months: local times are repeated
            order = np.argsort(point, kind="stable")
            first, point = first.take(order), point[order]
        alive = np.ones(len(first), dtype=np.bool_)
        if self.lacking:
            b = operands[0].instances
            low, latest = latest_start(b.columns, first.key, point, True, moment.keys)
            alive = first.end >= np.where(point <= moment.watermark, low, latest[first.key])
        due = point <= moment.watermark
        moment.timers.fire(point[due])
        found = replace(first, end=point).where(alive & due)
        kept = first.where(alive & ~due).by_end()
        found = found if self.all_rows else greatest(found, moment)
        return Flow(found, pending_of([kept], [opener])), (kept,)

    def due(self, carry: Carry, /) -> Int64:
        return add_each(carry[0].end, self.duration, self.zone)


def node(e: x.Seq | x.Not, own: Duration, build: Builder, horizon: int | None) -> Node:
    *absent, opener, _ = e.operands()
    found = (*(build.operand(b, horizon) for b in absent), build.passed(opener, horizon))
    operands = build.alike(found, horizon)
    a, b, role = operands[-1], operands[0], first_roles(operands)[-1]
    shape = Until(own, build.zone_of(own), bool(absent), role, build.all_rows)
    apart = bool(absent) and a.every and b.own
    return build.make(e, shape, operands, a.keys, horizon, timed=True, apart=apart)
