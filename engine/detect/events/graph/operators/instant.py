"""`instant(a)`, where only its interval counts."""

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

    It stands in what is only looked at, or tells at which instants to search (`search.nested`): a
    node compares its instances by what they hold, where a point counts as one occurrence. Carries
    nothing, and has no pending starts: bound 0. Source: Gehani, Jagadish & Shmueli (Ode), whose
    events are points.
    """

    slots: int = 0

    def step(self, operands: Sequence[Flow], carry: Carry, _: Moment, /) -> tuple[Flow, Carry]:
        part = operands[0].instances
        return Flow(replace(part, start=part.end), no_pending()), carry


def node(e: x.Instant, build: Builder, _: int | None) -> Node:
    return pointed(e, build, build.operand(e.part, None))


def pointed(e: x.Instant, build: Builder, part: Node) -> Node:
    """The instances of a node as points."""
    return build.make(e, Instant(), (part,), part.keys, None, point=True)
