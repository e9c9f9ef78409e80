"""Expressions with one operator that asks for less, and what an expression needs.

Example: `(a ; b) within 5 min` without `c` is relaxed to `(a ; b) without c` (kind `within`), to
`(a ; b) within 5 min` (`without`), and to `(a and b) within 5 min without c` (`order`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tidegate.engine.core.clocks import name_of
from tidegate.engine.replay.why_not.probe import NEVER
from tidegate.rules.algebra.emptiness import needed
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w

KINDS = ("within", "without", "not", "window", "order", "count", "some")
"""What is relaxed, in the order in which it is told: a bound, an absence, what closes a window, an
order, a number of occurrences, a number of operands."""


@dataclass(frozen=True, slots=True)
class Relaxation:
    """`whole`: the expression in which `node` asks for less."""

    kind: str
    node: x.Expression
    whole: x.Expression


def relaxations(e: x.Expression) -> Iterator[Relaxation]:
    """All of an expression. What must be absent, and what closes the window of `A` or `P`, stays as
    it is: if it asked for less, more would be refused."""
    for kind, relaxed in _relaxed(e):
        yield Relaxation(kind, e, relaxed)
    operands = e.operands()
    positive = {id(operand) for operand in positives(e)}
    for n, operand in enumerate(operands):
        if id(operand) in positive:
            for inner in relaxations(operand):
                changed = (*operands[:n], inner.whole, *operands[n + 1 :])
                yield replace(inner, whole=x.with_operands(e, changed))


def _relaxed(e: x.Expression) -> Iterator[tuple[str, x.Expression]]:
    """The forms of a node that ask for less."""
    match e:
        case x.Within(part=part):
            yield "within", part
        case x.Minus(part=part):
            yield "without", part
        case x.Not(opener=opener, closer=closer):
            yield "not", x.Seq(opener, closer)
            if not isinstance(closer, x.Own):
                yield "order", x.And((opener, closer))
        case x.Seq(first=first, then=then) if not isinstance(then, x.Own):
            yield "order", x.And((first, then))
        case x.AperiodicStar(opener=opener, closer=closer) if not isinstance(closer, x.Own):
            yield "order", x.And((opener, closer))
        case x.Aperiodic() | x.Periodic():
            yield "window", replace(e, closer=x.Name(NEVER))
            if isinstance(e, x.Aperiodic):
                yield "order", x.And((e.opener, e.part))
        case x.AnyRepeat(part=part) | x.Every(part=part) | x.Nth(part=part):
            yield "count", part
        case x.AnyOf(parts=parts) if e.count > 1:
            yield "some", x.Or(parts)


def positives(e: x.Expression) -> tuple[x.Expression, ...]:
    """The operands of which something must have happened."""
    match e:
        case x.Minus(part=part):
            return (part,)
        case x.Aperiodic(opener=opener, part=part):
            return opener, part
        case x.Not(opener=opener, closer=closer) | x.AperiodicStar(opener=opener, closer=closer):
            return opener, closer
        case x.Periodic(opener=opener):
            return (opener,)
        case w.Holding(begun=begun):
            return (begun,)
    return e.operands()


def lacking(e: x.Expression, has: Callable[[str], bool]) -> tuple[str, ...]:
    """The event types for lack of which an expression has no instance; of an `or` all of them.

    Example: `a ; (b or c)` lacks b and c if a alone `has` occurred; `a or b` lacks nothing then.
    """
    if isinstance(e, x.Name):
        return () if has(e.name) else (e.name,)
    if isinstance(e, x.Clock | x.Cron):
        return () if has(name_of(e)) else (name_of(e),)
    parts = positives(e)
    found = [lacking(part, has) for part in parts]
    enough = needed(e) if isinstance(e, x.Or | x.AnyOf) else len(parts)
    if sum(not each for each in found) >= enough:
        return ()
    return tuple(dict.fromkeys(name for each in found for name in each))


def subexpressions(e: x.Expression) -> Iterator[x.Expression]:
    """An expression and all below it that must have happened, parents first; own terminators are
    none."""
    if not isinstance(e, x.Own):
        yield e
        for part in positives(e):
            yield from subexpressions(part)
