"""Reads a rule's expression as a tree, and tells which streams its leaves look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tidegate.engine.detector.clocks import name_of
from tidegate.engine.detector.contexts import tree as t
from tidegate.engine.detector.edges import tick_type
from tidegate.rules import expression as x
from tidegate.rules.errors import EngineError


def read(expression: x.Expression, zone: str) -> tuple[t.Tree, Streams]:
    """The tree of a whole expression, and the streams that it looks at."""
    streams = Streams(zone)
    return streams.read(expression, 0, shown=True), streams


@dataclass
class Streams:
    """`events` are the event types of the leaves, `given` what is the same whatever is used up,
    with the first role of each; `looked` the expressions that are only looked at."""

    zone: str
    events: list[str] = field(default_factory=list)
    roles: list[int] = field(default_factory=list)
    given: list[x.Expression] = field(default_factory=list)
    given_roles: list[int] = field(default_factory=list)
    looked: list[x.Expression] = field(default_factory=list)

    def read(self, e: x.Expression, role: int, *, shown: bool) -> t.Tree:
        """The tree of a subexpression whose first role is `role`; `shown`: it is a parameter."""
        match e:
            case x.Name() | x.Clock() | x.Cron():
                number = _number(self.events, self.roles, names(e)[0], role)
                return t.Leaf(number, role - self.roles[number])
            case x.Every() | x.Nth() | x.Plus() | x.Periodic():
                number = _number(self.given, self.given_roles, e, role)
                return t.Given(number, role - self.given_roles[number], shown)
            case x.Labelled(part=part):
                return self.read(part, role, shown=shown)
            case x.Within(part=part, duration=duration):
                return t.Within(self.read(part, role, shown=shown), duration, self.zone)
            case x.Minus(part=part, absent=absent):
                return t.Minus(self.read(part, role, shown=shown), self._look(absent))
            case x.Aperiodic(opener=opener, part=part, closer=closer):
                inside = self.read(part, role + len(names(opener)), shown=shown)
                last = self._own(closer) or self._look(closer)
                return t.Aperiodic(self._look(opener), inside, last)
            case x.AperiodicStar() | x.PeriodicStar():
                return self._window(e, role, shown=shown)
            case x.Seq() | x.Not():
                return self._pair(e, role, shown=shown)
            case x.AnyRepeat(count=count, part=part):
                return t.AnyRepeat(count, self.read(part, role, shown=shown))
            case x.Or(parts=parts):
                return t.Either(self._each(parts, role, shown=shown))
            case x.And(parts=parts):
                return t.Conjunction(len(parts), self._each(parts, role, shown=shown))
            case x.AnyOf(count=count, parts=parts):
                count = min(count, len(parts))
                return t.Conjunction(count, self._each(parts, role, shown=shown))
        raise EngineError(
            "not-detectable",
            f"the operator {type(e).__name__} is not built in this context",
            "use restricted",
        )

    def _each(
        self, parts: tuple[x.Expression, ...], role: int, *, shown: bool
    ) -> tuple[t.Tree, ...]:
        trees = []
        for part in parts:
            trees.append(self.read(part, role, shown=shown))
            role += len(names(part))
        return tuple(trees)

    def _pair(self, e: x.Seq | x.Not, role: int, *, shown: bool) -> t.Tree:
        absent = None if isinstance(e, x.Seq) else self._look(e.absent)
        opener, closer = (e.first, e.then) if isinstance(e, x.Seq) else (e.opener, e.closer)
        role += 0 if isinstance(e, x.Seq) else len(names(e.absent))
        own = self._own(closer)
        if own is not None:
            return t.Until(self.read(opener, role, shown=shown), own, absent)
        a, c = self._each((opener, closer), role, shown=shown)
        return t.Sequence(a, c) if absent is None else t.Not(a, c, absent)

    def _window(self, e: x.AperiodicStar | x.PeriodicStar, role: int, *, shown: bool) -> t.Tree:
        opener = self.read(e.opener, role, shown=False)
        role += len(names(e.opener))
        part = None
        if isinstance(e, x.AperiodicStar):
            part = self.read(e.part, role, shown=shown)
            role += len(names(e.part))
        closer = self._own(e.closer) or self.read(e.closer, role, shown=False)
        role += len(names(e.closer))
        period = None
        if isinstance(e, x.PeriodicStar) and shown:
            period = t.Period(e.period, self.zone, tick_type(e), role)
        return t.Window(opener, closer, part, period)

    def _own(self, closer: x.Expression) -> t.After | None:
        return t.After(closer.duration, self.zone) if isinstance(closer, x.Own) else None

    def _look(self, e: x.Expression) -> int:
        if e not in self.looked:
            self.looked.append(e)
        return self.looked.index(e)


def _number(known: list[Any], roles: list[int], new: Any, role: int) -> int:
    """The number of a stream, known or new; `role` is the first of a new one."""
    if new not in known:
        known.append(new)
        roles.append(role)
    return known.index(new)


def names(e: x.Expression) -> list[str]:
    """The event types at the leaves, from the left: their places are the roles. The ticks of a `P`
    come after its operands."""
    match e:
        case x.Name(name=name):
            return [name]
        case x.Clock() | x.Cron():
            return [name_of(e)]
    found = [name for operand in e.operands() for name in names(operand)]
    return [*found, tick_type(e)] if isinstance(e, x.Periodic | x.PeriodicStar) else found


def silent(e: x.Expression, role: int = 0) -> frozenset[int]:
    """The roles that are no parameters: a and c of `A*` and `P*`."""
    found: set[int] = set()
    for operand in e.operands():
        roles = range(role, role + len(names(operand)))
        inside = isinstance(e, x.AperiodicStar) and operand is e.part
        if isinstance(e, x.AperiodicStar | x.PeriodicStar) and not inside:
            found |= {*roles}
        found |= silent(operand, role)
        role = roles.stop
    return frozenset(found)
