"""The laws of `rules.algebra.laws`, with numbers of seconds for their durations."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.rules.algebra.laws import Law
from tidegate.rules.expressions.nodes import Expression


def sides(
    law: Law, variables: Mapping[str, Expression], s: int, t: int
) -> tuple[Expression, Expression]:
    """Both sides with expressions for the variables and seconds for s and t."""
    return law.sides(variables, str(s), str(t), str(min(s, t)))
