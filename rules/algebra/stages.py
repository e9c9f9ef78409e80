"""Flat expressions: stages in sequence.

A stage is a set of event types of which a given number occur, in any order. Examples of flat
expressions: `a ; (b and c) ; any(2, d, e, f)` (three stages), `any(3, a*)`, `(a ; b within d) - c`,
`not(b)[a, c]`, `fail ; fail ; fail`, `(a ; b within d) ; c`. In every context the instances of a
flat expression are chosen without a search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tidegate.rules.algebra.transformation import loosened, shorter
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Context


@dataclass(frozen=True, slots=True)
class Stage:
    """Alternatives, called places, of which `count` have one occurrence each. A place is the event
    types that may fill it: `any(2, a, b or c, d)` is `Stage(2, (("a",), ("b", "c"), ("d",)))`.

    A `repeated` stage, `any(3, a*)`, has one place with `count` occurrences. `span_micros`: the
    longest instance of the stages up to this one, because of a `within` around them.
    """

    count: int
    places: tuple[tuple[str, ...], ...]
    repeated: bool = False
    span_micros: int | None = None

    @property
    def single(self) -> bool:
        """Whether the stage is one occurrence of one event type."""
        return not self.repeated and len(self.places) == len(self.places[0]) == 1


@dataclass(frozen=True, slots=True)
class Stages:
    """An expression as its stages: all occurrences of a stage are before those of the next. If an
    event type occurs twice in the expression, each stage is one occurrence of one event type.

    `events`: the event type of each leaf, from the left. `span_micros`: the longest instance.
    `absent`: the event type that ends all partial matches. What occurs at the same instant as an
    absent event is in no instance if `apart` (`E - absent`); else it may initiate one
    (`not(absent)[a, E]`).
    """

    events: tuple[str, ...]
    stages: tuple[Stage, ...]
    span_micros: int | None = None
    absent: str | None = None
    apart: bool = False

    @property
    def recent(self) -> bool:
        """Whether the greatest instance holds the last occurrence of each event type."""
        plain = all(len(place) == 1 for stage in self.stages for place in stage.places)
        whole = all(s.repeated or s.count == len(s.places) for s in self.stages)
        limited = all(s.single for s in self.stages if s.span_micros is not None)
        return plain and limited and (whole or len(self.stages) == 1)

    def direct(self, context: Context) -> bool:
        """Whether a consuming context chooses without a search. `cumulative` takes all occurrences
        of any instance, which only a search finds where a `within` stands around a part."""
        if context is Context.RECENT:
            return self.recent
        return not (context is Context.CUMULATIVE and self.limited)

    @property
    def limited(self) -> bool:
        """Whether there is a `within` around some of the stages."""
        return any(stage.span_micros is not None for stage in self.stages)


def stages(expression: x.Expression) -> Stages | None:
    """An expression without labels as stages; None if it is not flat."""
    events = [leaf.name for leaf in expression.walk() if isinstance(leaf, x.Name)]
    found = _filtered(expression)
    if found is None or not (len({*events}) == len(events) or _each_single(found, events)):
        return None
    return replace(found, events=tuple(events))


def most_kept(found: Stages, context: Context) -> tuple[int, int] | None:
    """How many partial matches (or occurrences not consumed) a context carries at most, and how
    many occurrences they hold. None where there is no such number."""
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


def _each_single(found: Stages, events: list[str]) -> bool:
    """Whether event types may occur twice: each stage is single, and what is absent is no stage."""
    single = all(stage.single for stage in found.stages)
    return single and (found.absent is None or events.count(found.absent) == 1)


def _filtered(node: x.Expression, span: int | None = None) -> Stages | None:
    """`span`: the shortest `within` around the node, microseconds."""
    match node:
        case x.Within(part=part, duration=duration) if duration.fixed:
            return _filtered(part, shorter(span, duration.micros))
        case x.Minus(part=part, absent=x.Name(name=name)):
            found = _filtered(part, span)
            if found is None or found.absent:
                return None
            return replace(found, absent=name, apart=True)
        case x.Not(absent=x.Name(name=name), opener=opener, closer=closer):
            first, last = _place(opener), _sequence(loosened(closer, span))
            fits = first and last and not any(s.span_micros is not None for s in last)
            whole = (Stage(1, (first,)), *last) if fits else ()
            return Stages((), whole, span, name) if whole else None
    whole = _sequence(loosened(node, span))
    return Stages((), whole, span) if whole else None


def _sequence(node: x.Expression) -> tuple[Stage, ...]:
    """The stages of a sequence; () if a part of it is not flat."""
    match node:
        case x.Seq(first=first, then=then):
            left, right = _sequence(first), _sequence(then)
            fits = left and right and not any(s.span_micros is not None for s in right)
            return (*left, *right) if fits else ()
        case x.Within(part=part, duration=duration) if duration.fixed:
            return _limited(_sequence(part), duration.micros)
        case x.AnyRepeat(count=count, part=x.Name(name=name)):
            return (Stage(count, ((name,),), repeated=True),)
        case x.AnyOf(count=count, parts=parts) if count < len(parts):
            places = tuple(map(_place, parts))
            return (Stage(count, places),) if all(places) else ()
    places = _all_of(node)
    return (Stage(len(places), places),) if places else ()


def _limited(found: tuple[Stage, ...], span: int) -> tuple[Stage, ...]:
    """Stages with a `within` around them."""
    last = [replace(each, span_micros=shorter(each.span_micros, span)) for each in found[-1:]]
    return (*found[:-1], *last)


def _all_of(node: x.Expression) -> tuple[tuple[str, ...], ...]:
    if not isinstance(node, x.And | x.AnyOf):
        place = _place(node)
        return (place,) if place else ()
    if isinstance(node, x.AnyOf) and node.count < len(node.parts):
        return ()
    parts = tuple(map(_all_of, node.parts))
    return tuple(place for part in parts for place in part) if all(parts) else ()


def _place(node: x.Expression) -> tuple[str, ...]:
    """The event types of `a or b ..`; () for other expressions."""
    match node:
        case x.Name(name=name):
            return (name,)
        case x.Or(parts=parts):
            names = tuple(map(_place, parts))
            return tuple(name for part in names for name in part) if all(names) else ()
    return ()
