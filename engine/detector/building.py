"""What every operator of an expression is compiled with: nodes with keys, roles and timers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.engine.detector.graph import Census, Node, Stream, digest
from tidegate.engine.detector.operators.detection import Detection
from tidegate.engine.detector.operators.event import Event
from tidegate.engine.detector.operators.repeated import Repeated
from tidegate.engine.detector.operators.shape import Shape
from tidegate.rules import expression as x
from tidegate.rules.model import Context, Selection, Settings


@dataclass
class Building:
    """One rule's key columns, activation and zone; `roots` are the nodes of the rules that may be
    its events. `census` is given where its keys are told apart; `excepts_keys`: they must be."""

    per: Mapping[str, tuple[str, ...]]
    activation: int
    zone: str
    context: Context | Selection
    settings: Settings
    roots: Mapping[str, Node]
    census: Census | None = None
    excepts_keys: bool = field(default=False, init=False)

    def _alike(self, operands: tuple[Node, ...], horizon: int | None) -> tuple[Node, ...]:
        census = self.census
        if census is None or not any(o.own for o in operands):
            return operands
        return tuple(o if o.own else self._repeated(o, census, horizon) for o in operands)

    def _event(self, name: str, *, all_rows: bool) -> Node:
        columns, root = self.per.get(name), self.roots.get(name)
        shape: Shape
        if root is None:
            shape = Event(name, columns, self.activation, all_rows)
        else:
            shape = Detection(name, root.digest, columns, self.activation, all_rows)
        streams = frozenset() if columns is None else frozenset([(name, columns)])
        own = columns is not None
        return Node(
            digest(shape),
            shape,
            (),
            (name,),
            streams,
            own=own,
            every=not own,
            point=root is None or root.point,
            timed=root is not None and root.timed,
        )

    def _keep_apart(self, operands: tuple[Node, ...], looked_at: Node | None = None) -> None:
        """Keys are told apart unless all operands have instances of one key each, or all and what
        is looked at only have instances of every key."""
        nodes = operands if looked_at is None else (*operands, looked_at)
        if any(o.every for o in operands) and any(o.own for o in nodes):
            self.excepts_keys = True

    def _repeated(self, inner: Node, census: Census, horizon: int | None) -> Node:
        return Node(
            digest(Repeated(), inner.digest, census.name),
            Repeated(),
            (inner,),
            inner.roles,
            census.streams,
            own=True,
            every=False,
            point=inner.point,
            horizon_micros=horizon,
            census=census.name,
            timed=inner.timed,
        )

    def _like(
        self, shape: Shape, operands: tuple[Node, ...], part: Node, horizon: int | None
    ) -> Node:
        """A node that passes some of `part`'s instances on, the first of its operands."""
        return self._make(
            shape, operands, own=part.own, every=part.every, point=part.point, horizon=horizon
        )

    def _make(
        self,
        shape: Shape,
        operands: tuple[Node, ...],
        *,
        own: bool,
        every: bool,
        point: bool,
        horizon: int | None,
        timed: bool = False,
    ) -> Node:
        streams = frozenset[Stream]().union(*(o.streams for o in operands))
        census = self.census.name if self.census and own else None
        return Node(
            digest(shape, [o.digest for o in operands], horizon, census),
            shape,
            operands,
            tuple(role for o in operands for role in o.roles),
            streams,
            own,
            every,
            point,
            horizon,
            census,
            timed or any(o.timed for o in operands),
        )

    def _zone_of(self, duration: x.Duration) -> str:
        return self.zone if duration.months else ""


def first_roles(operands: tuple[Node, ...]) -> tuple[int, ...]:
    sizes = [len(o.roles) for o in operands]
    return tuple(sum(sizes[:i]) for i in range(len(sizes)))
