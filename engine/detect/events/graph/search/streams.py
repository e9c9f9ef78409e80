"""A rule's expression as the exact search reads it: its leaves are numbered streams.

A stream is a node of the event graph. A leaf reads a stream of occurrences, every row of them, or
of what is the same whatever is consumed. An operand that is only looked at (the b of `a - b`) is a
stream of intervals. The intervals that `restricted` keeps are enough: of those with one end it
keeps the latest start, and if that one lies outside an instance, so do all others with that end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from tidegate.engine.detect.events.graph.roles import Role, roles
from tidegate.engine.detect.events.graph.search.sifted import Sifted
from tidegate.rules.algebra.plain_expressions import plain
from tidegate.rules.expressions import nodes as x

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Leaf(x.Expression):
    """An event type: the occurrences of `stream`, their roles moved up by `shift`."""

    stream: int
    shift: int


@dataclass(frozen=True, slots=True)
class Given(Leaf):
    """`every(n, a)`, `a[i]`, `a + [d]`, `P(a, [d], c)`: the same whatever is consumed. `shown`: its
    ticks are parameters."""

    shown: bool


@dataclass(frozen=True, slots=True)
class Point(x.Expression):
    """`instant(x)`: the instances of `part` as points. `each`: x is plain, and each occurrence is a
    point; else the greatest of each instant is. It is compared as one occurrence in `role`, the
    first of its roles."""

    part: x.Expression
    role: int
    each: bool


@dataclass(frozen=True, slots=True)
class Looked(x.Expression):
    """What is only looked at: the intervals of `stream`."""

    stream: int


@dataclass(frozen=True, slots=True)
class Ticks(x.Expression):
    """The ticks of a `P*`, which is read as an `A*` over them: e(a) + k * period, k >= 1. `source`
    is their event type, `role` their role."""

    period: x.Duration
    source: str
    role: int
    shown: bool


_LOOKED: dict[type[x.Expression], tuple[int, ...]] = {
    x.Minus: (1,),
    x.Not: (0,),
    x.Aperiodic: (0, 2),
}
"""Which operands are only looked at."""


@dataclass
class Reading:
    """Reads an expression with these roles, and numbers its streams as they are met.

    streams   event type, as points `instant` of it, or operand that is the same whatever is
              consumed -> its first role
    looked    operand that is only looked at

    Example: `(a ; b) - every(2, c)` has the streams a (0), b (1) and looks at `every(2, c)`.
    """

    roles: tuple[Role, ...]
    streams: dict[str | x.Expression, int] = field(default_factory=dict)
    looked: dict[x.Expression, int] = field(default_factory=dict)

    def read(self, e: x.Expression, role: int = 0, *, points: bool = False) -> x.Expression:
        """A subexpression whose first role is `role`. `points`: its occurrences are points."""
        match e:
            case x.Name() if points:
                return Leaf(*_numbered(self.streams, x.Instant(e), role))
            case x.Name() | x.Clock() | x.Cron():
                return Leaf(*_numbered(self.streams, self.roles[role].event, role))
            case x.Every() | x.Nth() | x.Plus() | x.Periodic():
                shown = any(r.parameter for r in self.roles[role : role + len(roles(e))])
                return Given(*_numbered(self.streams, e, role), shown)
            case Sifted(part=part):
                return e.moved(self.read(part, role), role)
            case x.Instant(part=part):
                return Point(self.read(part, role, points=plain(part)), role, plain(part))
            case x.Own():
                return e
        operands: list[x.Expression] = []
        for number, operand in enumerate(e.operands()):
            if number in _LOOKED.get(type(e), ()) and not isinstance(operand, x.Own):
                operands.append(Looked(_numbered(self.looked, operand, 0)[0]))
            else:
                operands.append(self.read(operand, role, points=points))
            role += len(roles(operand))
        match e:
            case x.And() | x.AnyOf():
                count = e.count if isinstance(e, x.AnyOf) else len(operands)
                return x.AnyOf(min(count, len(operands)), tuple(operands))
            case x.PeriodicStar(period=period):
                tick = self.roles[role]
                part = Ticks(period, tick.event, role, tick.parameter)
                return x.AperiodicStar(operands[0], part, operands[1])
        return x.with_operands(e, operands)


def _numbered(known: dict[T, int], new: T, role: int) -> tuple[int, int]:
    """The number of a stream, known or new, and the distance from its first role to `role`."""
    first = known.setdefault(new, role)
    return [*known].index(new), role - first


def parts(e: x.Expression) -> list[x.Expression]:
    """The operands whose instances make up this one's."""
    return [o for o in e.operands() if not isinstance(o, Looked | x.Own | Ticks)]


def leaves(e: x.Expression) -> Iterator[Leaf]:
    return (node for node in e.walk() if isinstance(node, Leaf))


def plain_leaves(e: x.Expression) -> list[Leaf]:
    """The event types of a plain expression, from the left; none if it is composite (S9), or has
    points."""
    if type(e) is Leaf:
        return [e]
    found = [plain_leaves(part) for part in e.parts] if isinstance(e, x.Or) else []
    return [leaf for part in found for leaf in part] if all(found) else []


def is_plain(e: x.Expression) -> bool:
    """Whether every occurrence of an expression counts (S9)."""
    if isinstance(e, x.Or):
        return all(map(is_plain, e.parts))
    return e.each if isinstance(e, Point) else type(e) is Leaf


def lasting(e: x.Expression) -> Iterator[Leaf]:
    """The leaves whose occurrences may be in an instance that ends after them."""
    match e:
        case Leaf():
            return iter(())
        case (
            x.Or() | x.Minus() | x.Within() | Sifted() | x.Aperiodic() | x.AnyOf(count=1) | Point()
        ):
            return _each_lasting(parts(e))
        case x.AnyRepeat(count=1, part=part):
            return lasting(part)
        case x.Seq(first=first, then=last) | x.Not(opener=first, closer=last):
            return iter((*leaves(first), *lasting(last))) if parts(e)[1:] else leaves(first)
    return leaves(e)


def _each_lasting(operands: Iterable[x.Expression]) -> Iterator[Leaf]:
    return (leaf for operand in operands for leaf in lasting(operand))


def ends(e: x.Expression) -> Iterator[tuple[Leaf, tuple[x.Duration, ...]]]:
    """The instants at which instances can end, whatever is consumed, as pairs: a leaf, and the
    durations to be added one after the other to the end of an occurrence of it.

    Example: `(a ; b) ; [5 s]` gives (b, 5 s).
    """
    match e:
        case Leaf():
            yield e, ()
        case (
            x.Seq(first=opener, then=x.Own(duration=after))
            | x.Not(opener=opener, closer=x.Own(duration=after))
            | x.AperiodicStar(opener=opener, closer=x.Own(duration=after))
        ):
            for leaf, path in ends(opener):
                yield leaf, (*path, after)
        case x.Seq(then=last) | x.Not(closer=last) | x.AperiodicStar(closer=last):
            yield from ends(last)
        case _:
            for part in parts(e):
                yield from ends(part)
