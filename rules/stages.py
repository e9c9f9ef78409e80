"""Flat expressions: stages in sequence.

A stage is a number of event types, of which so many occur in any order. Each of these is flat:
`a ; (b and c) ; any(2, d, e, f)`, `any(3, a*)`, `(a ; b within d) - c`, `not(b)[a, c]`.
In each context the instances of a flat expression are chosen without a search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate.rules import expression as x
from tidegate.rules.model import Context
from tidegate.rules.transform import loosened


@dataclass(frozen=True, slots=True)
class Stage:
    """`count` of its places have one occurrence each, of any of the place's event types. A
    `repeated` stage has one place, with `count` occurrences."""

    count: int
    places: tuple[tuple[str, ...], ...]
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Stages:
    """An expression over distinct event types: all occurrences of a stage are before those of the
    next.

    `events`: all event types, from the left. `span_micros`: an instance is no longer. `absent`: an
    event type that ends all partial matches. An occurrence at the same instant is in no instance if
    `apart` (`E - absent`); else it may initiate one (`not(absent)[a, E]`).
    """

    events: tuple[str, ...]
    stages: tuple[Stage, ...]
    span_micros: int | None = None
    absent: str | None = None
    apart: bool = False

    @property
    def chain(self) -> bool:
        """Whether it is `a ; b ; c ..`: an event type each stage."""
        plain = all(len(s.places) == len(s.places[0]) == 1 and not s.repeated for s in self.stages)
        return plain and len(self.stages) > 1 and not self.absent

    @property
    def recent(self) -> bool:
        """Whether the greatest instance holds the last occurrence of each event type."""
        plain = all(len(place) == 1 for stage in self.stages for place in stage.places)
        whole = all(s.repeated or s.count == len(s.places) for s in self.stages)
        return plain and (whole or len(self.stages) == 1)


def stages(expression: x.Expression) -> Stages | None:
    """An expression without labels as stages; None if it is anything else."""
    events = [leaf.name for leaf in expression.walk() if isinstance(leaf, x.Name)]
    found = _filtered(expression) if len({*events}) == len(events) else None
    return found and replace(found, events=tuple(events))


def most_kept(found: Stages, context: Context) -> tuple[int, int] | None:
    """How many partial matches, or occurrences not consumed, a context carries, and the occurrences
    in them. None where there is no such number."""
    first, *more = found.stages
    if first.repeated and not more and context is not Context.UNRESTRICTED:
        return first.count - 1, first.count - 1
    if context is not Context.RECENT or not found.recent:
        return None
    before, instances, occurrences = 0, 0, 0
    for stage in found.stages:
        kept = size = stage.count if stage.repeated else len(stage.places)
        if stage is found.stages[-1]:  # a complete match is detected: it is consumed
            kept = max(stage.count - 1, size - stage.count)
        instances += kept
        occurrences += kept * (before + 1)
        before += stage.count
    return instances, occurrences


def _filtered(node: x.Expression, span: int | None = None) -> Stages | None:
    """`span`: the shortest `within` around the node, microseconds."""
    match node:
        case x.Within(part=part, duration=duration) if not duration.months:
            return _filtered(part, duration.micros if span is None else min(span, duration.micros))
        case x.Minus(part=part, absent=x.Name(name=name)):
            found = _filtered(part, span)
            if found is None or found.absent:
                return None
            return replace(found, absent=name, apart=True)
        case x.Not(absent=x.Name(name=name), opener=opener, closer=closer):
            first, last = _place(opener), _sequence(loosened(closer, span))
            whole = (Stage(1, (first,)), *last) if first and last else ()
            return Stages((), whole, span, name) if whole else None
    whole = _sequence(loosened(node, span))
    return Stages((), whole, span) if whole else None


def _sequence(node: x.Expression) -> tuple[Stage, ...]:
    """The stages of a sequence; none where any part is not flat."""
    match node:
        case x.Seq(first=first, then=then):
            left, right = _sequence(first), _sequence(then)
            return (*left, *right) if left and right else ()
        case x.AnyRepeat(count=count, part=x.Name(name=name)):
            return (Stage(count, ((name,),), repeated=True),)
        case x.AnyOf(count=count, parts=parts) if count < len(parts):
            places = tuple(map(_place, parts))
            return (Stage(count, places),) if all(places) else ()
    places = _all_of(node)
    return (Stage(len(places), places),) if places else ()


def _all_of(node: x.Expression) -> tuple[tuple[str, ...], ...]:
    if not isinstance(node, x.And | x.AnyOf):
        place = _place(node)
        return (place,) if place else ()
    if isinstance(node, x.AnyOf) and node.count < len(node.parts):
        return ()
    parts = tuple(map(_all_of, node.parts))
    return tuple(place for part in parts for place in part) if all(parts) else ()


def _place(node: x.Expression) -> tuple[str, ...]:
    """The event types of `a or b ..`; none if it is anything else."""
    match node:
        case x.Name(name=name):
            return (name,)
        case x.Or(parts=parts):
            names = tuple(map(_place, parts))
            return tuple(name for part in names for name in part) if all(names) else ()
    return ()
