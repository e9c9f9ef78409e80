"""What the laws are tried on: expressions for their variables, spans, and a history."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import strategies as st

from tests.laws.table import sides
from tests.reference.alone import History, has_instance, seconds, world
from tests.reference.planted import TRIES
from tests.reference.strategies import CARLSON_LISPER, expressions
from tidegate.rules.algebra.laws import LAWS, Law
from tidegate.rules.expressions.nodes import Expression, Minus, Name

VARIABLES = st.fixed_dictionaries(dict.fromkeys("xyz", expressions(CARLSON_LISPER, depth=1)))
SPANS = st.integers(0, 5)
NEVER = Name("never")


@dataclass(frozen=True)
class Case:
    """Both sides of a law, and a history: events by name, each at a second."""

    left: Expression
    right: Expression
    history: History


@st.composite
def cases(draw: st.DrawFn, law: Law) -> Case:
    """A case where the left side has an instance. Where it has none by law, each side is what must
    be absent from one of x."""
    for _ in range(TRIES):
        variables = draw(VARIABLES)
        left, right = sides(law, variables, draw(SPANS), draw(SPANS))
        if NEVER in (left, right):
            left, right = Minus(variables["x"], left), Minus(variables["x"], right)
        history = draw(seconds(left))
        if has_instance(left, world(history)):
            break
    return Case(left, right, history)


each_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
