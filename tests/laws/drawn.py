"""What the laws are tried on: expressions for their variables, spans, and a history."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import strategies as st

from tests.laws.table import sides
from tests.reference.strategies import CARLSON_LISPER, NAMES, expressions
from tidegate.rules.expression import Expression
from tidegate.rules.laws import LAWS, Law

VARIABLES = expressions(CARLSON_LISPER, depth=1)
SPANS = st.integers(0, 5)


@dataclass(frozen=True)
class Case:
    """`history`: events by name, each at a second."""

    variables: dict[str, Expression]
    s: int
    t: int
    history: list[tuple[str, int]]

    def sides(self, law: Law) -> tuple[Expression, Expression]:
        return sides(law, self.variables, self.s, self.t)


CASES = st.builds(
    Case,
    variables=st.fixed_dictionaries(dict.fromkeys("xyz", VARIABLES)),
    s=SPANS,
    t=SPANS,
    history=st.lists(st.tuples(st.sampled_from(NAMES), SPANS), max_size=8),
)
each_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
