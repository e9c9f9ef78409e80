"""What is said to fire never fires in no history."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.reference.alone import seconds, world
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw, small
from tests.reference.meaning import Meaning
from tests.reference.strategies import EVERYTHING, expressions
from tidegate.rules.algebra.emptiness import fires_never
from tidegate.rules.expressions.nodes import Expression, Minus, Or, Own
from tidegate.rules.expressions.parser import parse


@pytest.mark.parametrize(
    "on",
    [
        "not(b)[a, b within 5]",
        "not(b or c)[a, b]",
        "not(b)[a, b ; c]",
        "(a and b) - b",
        "any(2, a, b, c) - (a or b)",
        "(a or b) - (b or a)",
        "A*(a, b, c) - c",
        "A(a, b, c) - b",
        "a ; (b - b)",
        "any(2, a, b - b)",
    ],
)
def test_fires_never(on: str) -> None:
    assert fires_never(parse(on))


@pytest.mark.parametrize(
    "on",
    ["not(b ; b)[a, b]", "not(b)[b, a]", "(a or b) - b", "any(2, a, b, c) - a", "A(a, b, c) - a"],
)
def test_may_fire(on: str) -> None:
    assert not fires_never(parse(on))


@detecting
@given(data=st.data())
@example_count(60)
def test_no_history_has_an_instance(data: st.DataObject) -> None:
    whole = data.draw(expressions(EVERYTHING, depth=2))
    parts = [part for part in whole.walk() if not isinstance(part, Own)]
    absent: Expression = data.draw(st.sampled_from(parts))
    if data.draw(st.booleans()):
        absent = Or((absent, data.draw(expressions(EVERYTHING, depth=1))))
    on = Minus(whole, absent)
    assume(fires_never(on))
    seeing = world(data.draw(seconds(whole)), whole)
    with small():
        saw(Meaning(seeing).of(whole))
        assert Meaning(seeing).of(on) == []
