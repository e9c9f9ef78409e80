"""Plain expressions: every occurrence counts; of composite ones, one an instant (S9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tidegate.rules.expressions import nodes as x


def plain(node: x.Expression) -> bool:
    """An event type's or a rule's name, a clock, `begin_of`, `end_of`, an `or` of plain ones, or
    `instant` of a plain one, labels aside."""
    match node:
        case x.Labelled(part=part) | x.Instant(part=part):
            return plain(part)
        case x.Or(parts=parts):
            return all(plain(part) for part in parts)
    return isinstance(node, x.Name | x.Clock | x.Cron | x.Edge)


LOOKED_AT: Mapping[type[x.Expression], tuple[int, ...]] = {
    x.Minus: (1,),
    x.Not: (0,),
    x.Aperiodic: (0, 2),
    x.Periodic: (0, 1),
    x.Plus: (0,),
}
"""Which operands are only looked at: of their instances nothing counts but the intervals."""


def compared(node: x.Expression) -> Iterator[x.Name]:
    """The names of which `restricted` keeps one of several simultaneous occurrences.

    Two kinds of names are left out: those of which every occurrence counts (in `any(m, a*)` and
    `a[i]`, and the b of `A*`); and those of which any occurrence at the instant will do (what must
    be absent, what opens or closes a window).
    """
    if isinstance(node, x.Name):
        yield node
    match node:
        case x.AnyRepeat(part=part) | x.Nth(part=part) if plain(part):
            passed = []
        case x.Minus(part=part) | x.Aperiodic(part=part):
            passed = [part]
        case x.Not(opener=opener, closer=closer):
            passed = [opener, closer]
        case x.AperiodicStar(opener=opener, part=part):
            passed = [opener] if plain(part) else [opener, part]
        case x.PeriodicStar(opener=opener):
            passed = [opener]
        case x.Periodic() | x.Plus():
            passed = []
        case _:
            passed = list(node.operands())
    for part in passed:
        yield from compared(part)
