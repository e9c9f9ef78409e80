"""The laws of `rules.algebra.laws`, with numbers of seconds for their durations."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.rules.algebra.laws import Law
from tidegate.rules.expressions.nodes import Expression, Name, with_operands
from tidegate.rules.expressions.parser import parse


def fill(expression: Expression, variables: Mapping[str, Expression]) -> Expression:
    """The expression with its variables replaced."""
    if isinstance(expression, Name):
        return variables.get(expression.name, expression)
    return with_operands(expression, [fill(e, variables) for e in expression.operands()])


def sides(
    law: Law, variables: Mapping[str, Expression], s: int, t: int
) -> tuple[Expression, Expression]:
    """Both sides with expressions for the variables and seconds for s and t."""
    left, right = (
        fill(parse(text.format(s=s, t=t, least=min(s, t))), variables)
        for text in (law.left, law.right)
    )
    return left, right
