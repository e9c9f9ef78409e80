"""The points of an expression: each `instant(x)` of an x that takes time, as a constituent.

Where it is only looked at, an `instant` is an operator like others. As a constituent it is compared
as one occurrence but has those of its x, which may be older than the instances that it is in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tidegate.rules.algebra.plain_expressions import LOOKED_AT, plain
from tidegate.rules.algebra.transformation import transform
from tidegate.rules.expressions import nodes as x


def points(node: x.Expression, rules: Collection[str]) -> Iterator[x.Instant]:
    """The outermost ones: of a composite, or of one of `rules`, whose detections may take time."""
    if isinstance(node, x.Instant) and not (plain(node) and x.names_in(node).isdisjoint(rules)):
        yield node
        return
    for number, operand in enumerate(node.operands()):
        if number not in LOOKED_AT.get(type(node), ()):
            yield from points(operand, rules)


def counted_points(
    node: x.Expression, rules: Collection[str], *, counted: bool = False
) -> Iterator[x.Instant]:
    """Those that are constituents of `every` or `[i]`. An instance of these does not tell which of
    its occurrences each of its points holds, so the engine cannot compare it."""
    if isinstance(node, x.Instant) and counted:
        yield from points(node, rules)
        return
    counted = counted or isinstance(node, x.Every | x.Nth)
    for number, operand in enumerate(node.operands()):
        if number not in LOOKED_AT.get(type(node), ()):
            yield from counted_points(operand, rules, counted=counted)


def reach_micros(node: x.Expression, rules: Collection[str]) -> int | None:
    """How much older than the end of an instance the occurrences in it can be, at most; None: there
    is no limit. A detection of one of `rules` counts from its end where it is a point.

    Example: of `(instant((a ; b) within 5 s) ; c) within 3 s` 8 s.
    """
    reaches = [transform(node, rules=rules).length_micros]
    composite = [point.part for point in points(node, rules) if not plain(point)]
    inner = [reach_micros(part, rules) for part in composite]
    if None in (*reaches, *inner):
        return None
    return sum(filter(None, reaches)) + max(filter(None, inner), default=0)
