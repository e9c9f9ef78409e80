"""The rows of a window."""

from __future__ import annotations

from collections.abc import Collection

from tests.reference.meaning import Meaning, World
from tests.reference.values import Instance, distinct
from tidegate.rules.expressions.nodes import Expression


def rows_of(part: Expression, world: World) -> list[Instance]:
    """Every occurrence of a plain expression, once, in order of its end."""
    return sorted(distinct(Meaning(world).of(part)), key=lambda instance: instance.end)


def together(rows: Collection[Instance], end: int) -> Instance:
    """Their union: it starts with the first row, a rule's detection being at its end."""
    parameters = frozenset().union(*(row.parameters for row in rows))
    return Instance(min(row.end for row in rows), end, parameters)
