"""A rule's node of the event graph -> the chain that a walk goes along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from engine.detector.graph import Node
from engine.detector.operators.event import Event
from engine.detector.operators.minus import Minus
from engine.detector.operators.sequence import Sequence
from engine.detector.operators.within import Within

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

    def takes(self, other: Route) -> bool:
        """Whether another route, no longer than the longest, lies on it."""
        *before, last = other.stages
        own = self.longest.stages[: len(other.stages)]
        guards = self.guards | other.guards
        return (
            other.columns == self.longest.columns
            and own[:-1] == tuple(before)
            and replace(own[-1], guards=last.guards) == last
            and not guards & self.longest.events
        )

    @property
    def guards(self) -> frozenset[str]:
        return self.longest.guards.union(*(guards for _, guards in self.outputs.values()))


def walks(routes: Mapping[str, Route]) -> list[Walk]:
    """The fewest walks in which each rule's route is."""
    found: list[Walk] = []
    for rule, own in sorted(routes.items(), key=lambda item: -len(item[1].stages)):
        walk = next((walk for walk in found if walk.takes(own)), None)
        if walk is None:
            # what guards the longest's own end guards that rule only
            *before, last = own.stages
            walk = Walk(replace(own, stages=(*before, replace(last, guards=frozenset()))))
            found.append(walk)
        walk.outputs[rule] = (len(own.stages) - 1, own.stages[-1].guards)
    return found
