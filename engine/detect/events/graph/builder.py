"""What an operator makes its node with. `events.step.compile` implements it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.graph.shape import Scan, Shape
from tidegate.rules.algebra.closers import Window
from tidegate.rules.expressions.nodes import Duration, Expression
from tidegate.rules.model import Settings


class Builder(Protocol):
    """Makes the nodes of one rule. A horizon is in microseconds: older instances are of no use.

    `roots`: the nodes of the rules that may be its events, by name. `all_rows`: at the root, every
    row of an event type counts, not only the greatest of an instant.
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
        """The node of an operand whose instances the operator passes on, all or some of them. Under
        `all_rows` every row of a plain operand counts."""
        ...

    def each(self, e: Expression, horizon: int | None) -> Node:
        """The node of an operand whose occurrences are counted or held: every row of a plain
        operand, a composite once per instant (S1, S9)."""
        ...

    def rows(self, e: Expression, horizon: int | None) -> Node:
        """The node of every row of a plain expression, in order of end."""
        ...

    def closer(self, e: Window, horizon: int | None) -> Node:
        """The node of what closes a window (S4): every row of a plain closer. Of a composite one
        the greatest of an instant; all of its instances if a detection shows which one closed."""
        ...

    def operands(self, parts: Iterable[Expression], horizon: int | None) -> tuple[Node, ...]: ...

    def alike(self, operands: Iterable[Node], horizon: int | None) -> tuple[Node, ...]:
        """The operands of one node. Where keys are told apart, broadcasts are repeated for each."""
        ...

    def event(self, name: str, e: Expression | None = None, *, all_rows: bool = False) -> Node:
        """An event type, or a rule's detections."""
        ...

    def make(
        self,
        e: Expression,
        shape: Shape | Scan,
        operands: tuple[Node, ...],
        keys: tuple[bool, bool],
        horizon: int | None,
        *,
        point: bool = False,
        timed: bool = False,
        apart: bool = False,
        ticks: str | None = None,
    ) -> Node:
        """The node of `e`. `keys` are its fields `own` and `every`. `ticks` is the event type of
        its ticks."""
        ...

    def zone_of(self, *durations: Duration | None) -> str:
        """The zone in which months and business days count; "" if no duration has any."""
        ...
