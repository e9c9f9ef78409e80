"""Operators of Ode and Samos, as they are made of others and of `instant`.

    relative(a, b)      a ; b
    relative(a, b[n])   times(n, b, a, c) without c: the n-th b after a
    prior(a, b)         a ; instant(b): a ends before b does
    choose(n, a)        a[n]
    times(n, b, a, c)   the n-th b after a, if no c after a ends by then
    fa(a, b, c)         the first b after a, if no c after a ends by then
    faAbs(a, b, c)      the same; c may begin before a

After an a, `any(n, b*) ; instant(b)` has ended when the n-th b ends at the earliest if one more b
ended before; so only the n-th b closes `not(..)[a, any(n, b*)]`.
"""

from __future__ import annotations

from collections.abc import Callable

from tidegate.rules.expressions import nodes as x

WORDS = ("relative", "prior", "choose", "times", "fa", "faAbs")
"""Their names."""


def relative(a: x.Expression, b: x.Expression) -> x.Expression:
    if isinstance(b, x.Nth):
        return _nth(b.index, b.part, a, ())
    return x.Seq(a, b)


def prior(a: x.Expression, b: x.Expression) -> x.Expression:
    return x.Seq(a, x.Instant(b))


def choose(n: int, a: x.Expression) -> x.Expression:
    return x.Nth(a, n)


def times(n: int, b: x.Expression, a: x.Expression, c: x.Expression) -> x.Expression:
    return _nth(n, b, a, (without_labels(c),))


def fa(a: x.Expression, b: x.Expression, c: x.Expression) -> x.Not:
    return _first(a, b, without_labels(c))


def fa_abs(a: x.Expression, b: x.Expression, c: x.Expression) -> x.Not:
    return _first(a, b, x.Instant(without_labels(c)))


def counts(b: x.Expression) -> x.Expression | None:
    """The part of b that counts since activation, which `relative` refuses: Ode counts from a on.
    But `b[n]` itself is counted from there."""
    inner = b.part if isinstance(b, x.Nth) else b
    return next((node for node in inner.walk() if isinstance(node, x.Every | x.Nth)), None)


def written(node: x.Expression) -> tuple[int | x.Expression, ...] | None:
    """The arguments with which `node.word` makes the node; None if it is of another form by now."""
    for given in _guesses(node):
        made = _MADE[node.word](*given)
        if made == node:
            return given
    return None


def without_labels(node: x.Expression) -> x.Expression:
    """What must be absent, and is no constituent, without its labels."""
    while isinstance(node, x.Labelled):
        node = node.part
    return x.with_operands(node, [without_labels(operand) for operand in node.operands()])


def _nth(
    n: int, b: x.Expression, a: x.Expression, absent: tuple[x.Expression, ...]
) -> x.Expression:
    again = x.Seq(x.AnyRepeat(n, without_labels(b)), x.Instant(without_labels(b)))
    return x.Not(x.Or((*absent, again)) if absent else again, a, x.AnyRepeat(n, b))


def _first(a: x.Expression, b: x.Expression, absent: x.Expression) -> x.Not:
    again = x.Seq(without_labels(b), x.Instant(without_labels(b)))
    return x.Not(x.Or((absent, again)), a, b)


_MADE: dict[str, Callable[..., x.Expression]] = {
    "relative": relative,
    "prior": prior,
    "choose": choose,
    "times": times,
    "fa": fa,
    "faAbs": fa_abs,
}


def _guesses(node: x.Expression) -> list[tuple[int | x.Expression, ...]]:
    """The arguments that a node may have been made of, by its word."""
    match node.word, node:
        case "relative", x.Not(opener=a, closer=x.AnyRepeat(count=n, part=b)):
            return [(a, x.Nth(b, n))]
        case "relative", x.Seq(first=a, then=b):
            return [(a, b)]
        case "prior", x.Seq(first=a, then=x.Instant(part=b)):
            return [(a, b)]
        case "choose", x.Nth(index=n, part=a):
            return [(n, a)]
        case "times", x.Not(
            absent=x.Or(parts=(c, *_)), opener=a, closer=x.AnyRepeat(count=n, part=b)
        ):
            return [(n, b, a, c)]
        case "fa", x.Not(absent=x.Or(parts=(c, *_)), opener=a, closer=b):
            return [(a, b, c)]
        case "faAbs", x.Not(absent=x.Or(parts=(x.Instant(part=c), *_)), opener=a, closer=b):
            return [(a, b, c)]
    return []
