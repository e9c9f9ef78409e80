"""What every instance of an expression has, as far as the form shows it; and expressions that have
no instance in any history."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.expressions.parser import unlabelled


def every_instance(node: x.Expression, has: Callable[[x.Expression], bool | None]) -> bool:
    """Whether every instance of a node has something. `has` answers for a node; where it gives None
    the operands decide.

    Example: if all instances of a and b have it, then so have those of `a ; c`, of `a or b` and of
    `any(2, a, b, c)`, which leaves out only one of the three; those of `a or c` may lack it.
    """
    known = has(node)
    if known is not None:
        return known
    parts = _made_of(node)
    return sum(every_instance(part, has) for part in parts) > len(parts) - needed(node)


def needed(node: x.Expression) -> int:
    """How many operands an instance has instances of: 1 for `or`, m for `any(m, ..)`, else all."""
    if isinstance(node, x.Or):
        return 1
    parts = _made_of(node)
    return min(node.count, len(parts)) if isinstance(node, x.AnyOf) else len(parts)


def _made_of(node: x.Expression) -> tuple[x.Expression, ...]:
    """The operands whose instances every instance of the node is made of."""
    match node:
        case x.Minus(part=part) | x.Aperiodic(part=part):
            return (part,)
        case x.Not(opener=opener, closer=closer) | x.AperiodicStar(opener=opener, closer=closer):
            return opener, closer
        case x.Periodic(opener=opener):
            return (opener,)
        case w.Holding(begun=begun):
            return (begun,)
    return node.operands()


def fires_never(node: x.Expression) -> bool:
    """Whether an expression has no instance in any history, as far as its form shows."""
    return every_instance(node, _never)


def _never(node: x.Expression) -> bool | None:
    match node:
        case x.Not(closer=part, absent=absent) | x.Minus(part=part, absent=absent):
            return _holds(unlabelled(part), unlabelled(absent)) or None
        case x.Aperiodic(opener=opener):
            return fires_never(opener) or None
    return None


def takes_time(node: x.Expression) -> bool:
    """Whether every instance ends later than it starts, as far as the form shows."""
    return every_instance(node, _takes_time)


def _takes_time(node: x.Expression) -> bool | None:
    if isinstance(node, x.Seq | x.Not | x.AperiodicStar | x.PeriodicStar):
        return True
    return False if isinstance(node, x.Plus | x.Periodic | x.Instant) else None


def _holds(node: x.Expression, part: x.Expression) -> bool:
    """Whether every instance of a node has one of `part` inside, as far as the form shows."""

    def has(node: x.Expression) -> bool | None:
        alternatives = part.parts if isinstance(part, x.Or) else ()
        if node == part or any(_holds(node, one) for one in alternatives):
            return True
        return False if isinstance(node, x.Plus | x.Periodic | x.Instant) else None

    return every_instance(node, has)
