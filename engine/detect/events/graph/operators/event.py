"""An event type: the leaf of every expression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.graph.roles import roles
from tidegate.engine.detect.events.occurrences.instances import Carry, Flow, Moment
from tidegate.rules.expressions import nodes as x

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Event:
    """`[[E]]` = the occurrences of primitive event type E, each with start = end.

    `columns` are the key columns by the rule's `per:`, None for a broadcast. `all_rows`: all
    simultaneous occurrences of a key count; else the frame has chosen the greatest. The operand is
    what arrives from the activation on. Carries nothing: bound 0. Source: Carlson & Lisper,
    primitive event streams.
    """

    event: str
    columns: tuple[str, ...] | None
    activation: int
    all_rows: bool
    slots: int = 0

    def step(self, operands: Sequence[Flow], carry: Carry, _: Moment, /) -> tuple[Flow, Carry]:
        return operands[0], carry


def node(e: x.Name | x.Clock | x.Cron, build: Builder, _: int | None) -> Node:
    return build.event(roles(e)[0].event, e)
