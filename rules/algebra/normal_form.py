"""The normal form of an expression: `[[E]]` stays the same, and so every detection (S9).

Expressions that the laws in use make equal get equal trees, so what two rules share is one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import UnionType

from tidegate.rules.algebra.emptiness import fires_never
from tidegate.rules.algebra.laws import LAWS, Use
from tidegate.rules.algebra.plain_expressions import plain
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.parser import own_terminator, parse

Found = Mapping[str, x.Expression | x.Duration]
Pattern = tuple[x.Expression, x.Expression]

# Durations that stand for the laws' variables in a parsed pattern.
_S, _T, _LEAST = (x.Duration(0, number) for number in (1, 2, 3))
_COUNTED = x.AnyRepeat | x.Every | x.Nth | x.Instant  # of a composite, one an instant
_VARIABLES = {_S: "s", _T: "t", _LEAST: "least"}


def normalise(node: x.Expression) -> x.Expression:
    """The normal form: operands of `or` and `and` in one sorted list, a chain of `;` grouped to
    the left, and every law marked `Use.REWRITE` applied until none applies any more."""
    operands = node.operands()
    if not operands:
        return node
    node = _ordered(keeping(node, [normalise(operand) for operand in operands]))
    for pattern in _patterns().get(type(node), ()):
        for rewritten in _applied(pattern, node):
            if not _makes_own(rewritten):
                return normalise(rewritten)
    return node


def keeping(node: x.Expression, operands: Iterable[x.Expression]) -> x.Expression:
    """The operator over rewritten operands. An old operand is kept where the rewrite would change
    its effect:

    - a composite is counted once an instant, so it must not become plain (S9);
    - `a + [d]` must not become an own terminator by chance;
    - simultaneous ticks of two `P` are two, so the two `P` must not become one (S6).
    """
    if isinstance(node, x.Periodic | x.PeriodicStar):
        return node
    old, new = list(node.operands()), list(operands)
    if isinstance(node, _COUNTED) and plain(old[0]) != plain(new[0]):
        new = old
    if isinstance(node, x.AperiodicStar) and plain(old[1]) != plain(new[1]):
        new[1] = old[1]
    made = x.with_operands(node, new)
    return node if _makes_own(made) else made


def _makes_own(node: x.Expression) -> bool:
    """Whether an `a + [d]` in last position would be read as an own terminator."""
    if isinstance(node, x.Seq):
        return own_terminator(node.first, node.then) is not node.then
    if isinstance(node, x.Not | x.Aperiodic | x.AperiodicStar | x.Periodic | x.PeriodicStar):
        return own_terminator(node.opener, node.closer) is not node.closer
    return False


# -- one list, sorted --------------------------------------------------------------------------


def _ordered(node: x.Expression) -> x.Expression:
    match node:
        case x.Or():
            return _or(dict.fromkeys(_flat(x.Or, node)))
        case x.And():
            return x.And(_sorted(_flat(x.And, node)))
        case x.Seq():
            return _left(node)
        case _:
            return node


def _flat(kind: type[x.Or] | type[x.And], node: x.Expression) -> Iterator[x.Expression]:
    if isinstance(node, kind):
        for part in node.operands():
            yield from _flat(kind, part)
    else:
        yield node


def _or(parts: Iterable[x.Expression]) -> x.Expression:
    """The parts in order. They stay as written if instances that S1 ranks alike may show different
    constituents: S1 compares no ticks, and it compares what opens or closes a window of `A*` or
    `P*`, which is not shown."""
    listed = tuple(parts)
    if not _any(x.AperiodicStar | x.Periodic | x.PeriodicStar, listed):
        listed = _sorted(listed)
    return x.Or(listed) if len(listed) > 1 else listed[0]


def _any(kind: type[x.Expression] | UnionType, parts: tuple[x.Expression, ...]) -> bool:
    return any(isinstance(node, kind) for part in parts for node in part.walk())


def _sorted(parts: Iterable[x.Expression]) -> tuple[x.Expression, ...]:
    """Operands in the order of their text. With a label they stay as written: an occurrence in two
    roles shows the label of the first."""
    listed = tuple(parts)
    if _any(x.Labelled, listed):
        return listed
    return tuple(sorted(listed, key=format_expression))


def _left(node: x.Seq) -> x.Expression:
    """x ; (y ; z) as (x ; y) ; z."""
    first: x.Expression = node.first
    for part in _chain(node.then):
        made = x.Seq(first, part)
        if _makes_own(made):
            return node
        first = made
    return first


def _chain(node: x.Expression) -> Iterator[x.Expression]:
    if isinstance(node, x.Seq):
        yield from _chain(node.first)
        yield from _chain(node.then)
    else:
        yield node


# -- rewriting ---------------------------------------------------------------------------------


@cache
def _patterns() -> Mapping[type[x.Expression], Sequence[Pattern]]:
    """Both sides of each law, by the operator at the root of the left one."""

    def read(text: str) -> x.Expression:
        return parse(text.format(s="1 us", t="2 us", least="3 us"))

    found: dict[type[x.Expression], list[Pattern]] = {}
    for law in LAWS:
        if law.use is Use.REWRITE:
            left = read(law.left)
            found.setdefault(type(left), []).append((left, read(law.right)))
    return found


def _applied(pattern: Pattern, node: x.Expression) -> Iterator[x.Expression]:
    """What the node becomes by a law, in every way in which the law's left side matches the node;
    of `or` and `and`, any two of its operands. The operator at the root of both is the same."""
    left, right = pattern
    if not isinstance(node, x.Or | x.And):
        yield from _filled(right, _matches(left, node, {}))
        return
    one, other = sorted(left.operands(), key=_matches_all)  # what is seldom found first
    for i, first in enumerate(node.parts):
        for found in _matches(one, first, {}):
            for j, second in enumerate(node.parts):
                if i != j:
                    for made in _filled(right, _matches(other, second, found)):
                        parts = list(node.parts)
                        parts[min(i, j)] = made
                        del parts[max(i, j)]
                        yield type(node)(tuple(parts)) if len(parts) > 1 else made


def _matches_all(pattern: x.Expression) -> bool:
    return isinstance(pattern, x.Name) and pattern.name != "never"


def _filled(right: x.Expression, matches: Iterable[Found]) -> Iterator[x.Expression]:
    filled = (_fill(right, found) for found in matches)
    return (made for made in filled if made is not None)


def _fill(node: x.Expression, found: Found) -> x.Expression | None:
    """A right side with its variables filled in; None if `least` compares a month with days."""
    if isinstance(node, x.Name):
        value = found.get(node.name)
        return value if isinstance(value, x.Expression) else node
    operands = [_fill(operand, found) for operand in node.operands()]
    known = [operand for operand in operands if operand is not None]
    if len(known) < len(operands):
        return None
    if not isinstance(node, x.Within):
        return x.with_operands(node, known)
    name = _VARIABLES[node.duration]
    chosen = _least(found["s"], found["t"]) if name == "least" else found[name]
    return x.Within(known[0], chosen) if isinstance(chosen, x.Duration) else None


def _least(*durations: x.Expression | x.Duration) -> x.Duration | None:
    a, b = (d for d in durations if isinstance(d, x.Duration))
    if isinstance(a, x.BusinessDays) or isinstance(b, x.BusinessDays):
        return a if a == b else None
    if a.months <= b.months and a.micros <= b.micros:
        return a
    return b if b.months <= a.months and b.micros <= a.micros else None


def _matches(pattern: x.Expression, node: x.Expression, found: Found) -> Iterator[Found]:
    """The values of the variables for every way in which a pattern matches a node. `found`: the
    values that are known."""
    if isinstance(pattern, x.Name):
        if pattern.name != "never" or fires_never(node):
            yield from _bound(pattern.name, node, found)
        return
    if type(pattern) is not type(node):
        return
    inner, operands = pattern.operands(), node.operands()
    if len(inner) != len(operands):
        return
    orders = [operands]
    if isinstance(pattern, x.Or | x.And):
        orders.append(operands[::-1])
    for order in orders:
        matches: Iterable[Found] = [found]
        if isinstance(pattern, x.Within) and isinstance(node, x.Within):
            matches = _bound(_VARIABLES[pattern.duration], node.duration, found)
        for part, operand in zip(inner, order, strict=True):
            matches = [more for known in matches for more in _matches(part, operand, known)]
        yield from matches


def _bound(name: str, value: x.Expression | x.Duration, found: Found) -> Iterator[Found]:
    if name not in found:
        yield {**found, name: value}
    elif found[name] == value:
        yield found
