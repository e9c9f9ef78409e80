"""The one choice, at the root: semantics 3 with S1 to S5.

Given one rule's expression and what it sees (one key), yields the detections in order of time.
Meaning is worked out anew whenever something has been used up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.reference.meaning import Meaning, World
from tests.reference.values import (
    Instance,
    Occurrence,
    distinct,
    greatest,
    hull,
    oldest,
)
from tests.reference.where import true_of
from tidegate.rules.expressions.nodes import Expression
from tidegate.rules.expressions.predicates import Predicate
from tidegate.rules.model import Context


class Choice:
    """What has been used up so far, and how one context detects at one instant."""

    def __init__(
        self, expression: Expression, world: World, where: Predicate | None = None
    ) -> None:
        self.expression = expression
        self.where = where
        self.world = world
        self.meaning = Meaning(world)
        self.initiated: set[object] = set()

    def use_up(self, occurrences: Iterable[Occurrence]) -> None:
        used = self.meaning.used | frozenset(occurrences)
        if used != self.meaning.used:
            self.meaning = self.meaning.without(used)

    def ending(self, now: int) -> list[Instance]:
        """D: the instances that end now, built from occurrences not yet used up."""
        return [i for i in self.instances() if i.end == now]

    def instances(self) -> list[Instance]:
        """All of which the rule's `where` is true, before S5 makes one of several."""
        found = self.meaning.of(self.expression)
        if self.where is None:
            return found
        return [i for i in found if true_of(self.where, self.expression, i)]

    def next_instant(self, after: int | None) -> int | None:
        ends = [i.end for i in self.instances()]
        return min((end for end in ends if after is None or end > after), default=None)


def unrestricted(choice: Choice, now: int) -> Iterator[Instance]:
    """All of D; nothing is used up."""
    yield from distinct(choice.ending(now))


def restricted(choice: Choice, now: int) -> Iterator[Instance]:
    """The greatest of D; nothing is used up."""
    yield greatest(choice.ending(now))


def recent(choice: Choice, now: int) -> Iterator[Instance]:
    """The greatest of D; used up are its occurrences and every older or simultaneous one of the
    same event types."""
    detected = greatest(choice.ending(now))
    yield detected
    for type_ in {o.type for o in detected.occurrences()}:
        newest = max(o.end for o in detected.occurrences() if o.type == type_)
        seen = (o for group in choice.world.occurrences.values() for o in group)
        choice.use_up(o for o in seen if o.type == type_ and o.end <= newest)


def chronicle(choice: Choice, now: int) -> Iterator[Instance]:
    """The one with the oldest `times`, its occurrences used up; then again, until D is empty. An
    instance without occurrences is detected once."""
    without: set[int] = set()  # starts of what has been detected without occurrences
    while left := [i for i in choice.ending(now) if i.occurrences() or i.start not in without]:
        detected = oldest(left)
        yield detected
        choice.use_up(detected.occurrences())
        if not detected.occurrences():
            without.add(detected.start)


def initiator(instance: Instance) -> object:
    """S2: of several occurrences at the start the lowest in rank; without one, the instant. An
    `instant(x)` is its own: there is one at an instant, or of a plain x each occurrence."""
    found: list[tuple[Any, Any, object]] = [
        (o.rank(), (1, o.place()), o) for _, o in instance.compared() if o.start == instance.start
    ]
    for point in instance.points:
        if point.time == instance.start:
            held = sorted((o.rank(), o.place()) for _, o in point.held)
            among = (1, point.of.place()) if point.of else (0, held)
            found.append((point.rank, among, point.initiator()))
    return min(found, key=lambda each: each[:2])[2] if found else instance.start


def continuous(choice: Choice, now: int) -> Iterator[Instance]:
    """For each initiator that has not initiated yet, the one with the oldest `times`; used up is
    that occurrence, as initiator only."""
    by_initiator: dict[object, list[Instance]] = {}
    for instance in choice.ending(now):
        by_initiator.setdefault(initiator(instance), []).append(instance)
    for first, instances in by_initiator.items():
        if first not in choice.initiated:
            choice.initiated.add(first)
            yield oldest(instances)


def cumulative(choice: Choice, now: int) -> Iterator[Instance]:
    """One: the union of D, starting at the earliest start in D; all of it is used up."""
    detected = hull(choice.ending(now))
    yield detected
    choice.use_up(detected.occurrences())


CONTEXTS: dict[Context, Callable[[Choice, int], Iterator[Instance]]] = {
    Context.UNRESTRICTED: unrestricted,
    Context.RESTRICTED: restricted,
    Context.RECENT: recent,
    Context.CHRONICLE: chronicle,
    Context.CONTINUOUS: continuous,
    Context.CUMULATIVE: cumulative,
}


def detections(
    expression: Expression,
    world: World,
    context: Context,
    until: int | None = None,
    where: Predicate | None = None,
) -> list[Instance]:
    """What a rule with this expression and context detects, up to and including `until`."""
    choice = Choice(expression, world, where)
    found: list[Instance] = []
    now = choice.next_instant(None)
    while now is not None and (until is None or now <= until):
        found += CONTEXTS[context](choice, now)
        now = choice.next_instant(now)
    return found
