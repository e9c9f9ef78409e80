"""The points of an expression: each `instant(x)` of an x that takes time, where it is a constituent.

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


def depth_micros(node: x.Expression, rules: Collection[str]) -> int | None:
    """How much earlier than its start an instance can have occurrences, which its points hold, at
    most, microseconds; None: there is no limit.

    Example: of `instant((a ; b) within 5 s) ; c` 5 s.
    """
    deepest = 0
    for point in points(node, rules):
        length = transform(point.part, rules=rules).length_micros
        deeper = depth_micros(point.part, rules)
        if length is None or deeper is None:
            return None
        deepest = max(deepest, length + deeper)
    return deepest
