"""A rule's node of the event graph -> the chain that a walk goes along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tidegate.engine.detector.graph import Node
from tidegate.engine.detector.operators.event import Event
from tidegate.engine.detector.operators.minus import Minus
from tidegate.engine.detector.operators.sequence import Sequence
from tidegate.engine.detector.operators.within import Within

ENDLESS = 2**62


@dataclass(frozen=True, slots=True)
class Stage:
    """A chain up to an event type: of this one's occurrence at t and the greatest instance before,
    if that starts at t - span or later, and after the last of every event type in `guards`."""

    event: str
    span: int = ENDLESS
    guards: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Route:
    """`((a ; b) - c ; d) within s` and the like: stages over distinct event types, all keyed by
    `columns` (None: all without a key)."""

    columns: tuple[str, ...] | None
    stages: tuple[Stage, ...]

    def upto(self, count: int) -> Route:
        """The first stages, whatever guards the last of them."""
        *before, last = self.stages[:count]
        return Route(self.columns, (*before, replace(last, guards=frozenset())))

    @property
    def events(self) -> frozenset[str]:
        return frozenset(stage.event for stage in self.stages)

    @property
    def guards(self) -> frozenset[str]:
        return frozenset[str]().union(*(stage.guards for stage in self.stages))


def route(root: Node) -> Route | None:
    """The route of a rule's node in `restricted`; None if it is no such chain.

    Its instances start no earlier than those before them, so that the greatest is the latest.
    """
    found = _route(root)
    if found is None or len(found.events) < len(found.stages) or found.events & found.guards:
        return None
    return found


def _route(node: Node) -> Route | None:
    match node.shape:
        case Event(event=event, columns=columns, all_rows=False):
            return Route(columns, (Stage(event),))
        case Sequence(span_micros=span):
            part, leaf = _route(node.operands[0]), _leaf(node.operands[1])
            if part and leaf and leaf.columns == part.columns:
                stage = Stage(leaf.event, ENDLESS if span is None else span)
                return replace(part, stages=(*part.stages, stage))
        case Within(duration=duration) if not duration.months:
            part = _route(node.operands[0])
            if part:
                *before, last = part.stages
                last = replace(last, span=min(last.span, duration.micros))
                return replace(part, stages=(*before, last))
        case Minus():
            part, leaf = _route(node.operands[0]), _leaf(node.operands[1])
            if part and leaf and leaf.columns == part.columns:
                *before, last = part.stages
                last = replace(last, guards=last.guards | {leaf.event})
                return replace(part, stages=(*before, last))
    return None


def _leaf(node: Node) -> Event | None:
    return node.shape if isinstance(node.shape, Event) else None


@dataclass
class Walk:
    """Routes of which each is the beginning of the longest, up to what guards its end.

    outputs[rule] is the stage that its detections end at, and what guards these.
    """

    longest: Route
    outputs: dict[str, tuple[int, frozenset[str]]] = field(default_factory=dict)

    @property
    def guards(self) -> frozenset[str]:
        return self.longest.guards.union(*(guards for _, guards in self.outputs.values()))


def walks(routes: Mapping[str, Route]) -> list[Walk]:
    """Few walks in which each rule's route is: routes that begin alike go together."""
    found: list[Walk] = []
    along: dict[Route, Walk] = {}
    for rule, own in sorted(routes.items(), key=lambda item: -len(item[1].stages)):
        guards = own.stages[-1].guards
        walk = along.get(own.upto(len(own.stages)))
        if walk is None or not guards.isdisjoint(walk.longest.events):
            walk = Walk(own.upto(len(own.stages)))
            found.append(walk)
            along |= {walk.longest.upto(n): walk for n in range(1, len(own.stages) + 1)}
        walk.outputs[rule] = (len(own.stages) - 1, guards)
    return found
