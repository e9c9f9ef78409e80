"""`instant(a)`, where it is only looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.occurrences.instances import Carry, Flow, Moment, no_pending
from tidegate.rules.expressions import nodes as x

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Instant:
    """`[[instant(a)]]` = { the greatest a of each instant, as a point there }.

    It stands in what is only looked at, so only its interval counts: where it would be a
    constituent, it is refused (`rules.checks.gaps`). Carries nothing, and has no pending starts:
    bound 0. Source: Gehani, Jagadish & Shmueli (Ode), whose events are points.
    """

    slots: int = 0

    def step(self, operands: Sequence[Flow], carry: Carry, _: Moment, /) -> tuple[Flow, Carry]:
        part = operands[0].instances
        return Flow(replace(part, start=part.end), no_pending()), carry


def node(e: x.Instant, build: Builder, _: int | None) -> Node:
    part = build.operand(e.part, None)
    return build.make(e, Instant(), (part,), part.keys, None, point=True)
