"""What an operator makes its node with: `events.step.compile` has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.graph.shape import Shape
from tidegate.rules.algebra.closers import Window
from tidegate.rules.expressions.nodes import Duration, Expression
from tidegate.rules.model import Settings


class Builder(Protocol):
    """The nodes of one rule. A horizon is in microseconds: older instances are of no use.

    `roots`: by name, the nodes of the rules that may be its events. `all_rows`: what is passed to
    the root unchanged are rows of event types, and all that end at an instant count, not the
    greatest.
    """

    @property
    def zone(self) -> str: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def roots(self) -> Mapping[str, Node]: ...
    @property
    def all_rows(self) -> bool: ...

    def operand(self, e: Expression, horizon: int | None) -> Node:
        """The node of an expression: for each end the greatest instance."""
        ...

    def passed(self, e: Expression, horizon: int | None) -> Node:
        """The node of an operand whose instances, or some of them, are those of the operator."""
        ...

    def each(self, e: Expression, horizon: int | None) -> Node:
        """What counts as an occurrence of an operand: every row of what is plain, a composite once
        an instant (S1, S9)."""
        ...

    def closer(self, e: Window, horizon: int | None) -> Node:
        """What closes a window: every row of what is plain, for these are chosen among (S4); of
        anything else the greatest, unless it can be seen which it is."""
        ...

    def operands(self, parts: Iterable[Expression], horizon: int | None) -> tuple[Node, ...]: ...

    def alike(self, operands: Iterable[Node], horizon: int | None) -> tuple[Node, ...]:
        """The operands of one node; where keys are told apart, broadcasts are repeated for each."""
        ...

    def event(self, name: str, e: Expression | None = None, *, all_rows: bool = False) -> Node:
        """An event type, or a rule's detections."""
        ...

    def make(
        self,
        e: Expression,
        shape: Shape,
        operands: tuple[Node, ...],
        keys: tuple[bool, bool],
        horizon: int | None,
        *,
        point: bool = False,
        timed: bool = False,
        apart: bool = False,
        ticks: str | None = None,
    ) -> Node:
        """The node of `e`; keys are its `own` and `every`, `ticks` the event type of its ticks."""
        ...

    def zone_of(self, *durations: Duration | None) -> str:
        """The zone in which months count, where there are any."""
        ...
