"""The transformation means the same, and bounds what it says it bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.alone import seconds as planted_seconds
from tests.reference.alone import seen, world
from tests.reference.contexts import detections
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw, small
from tests.reference.meaning import World
from tests.reference.strategies import EVERYTHING, SECOND, expressions
from tests.reference.values import Instance
from tidegate.rules.algebra.transformation import Transformed, transform
from tidegate.rules.expressions.nodes import (
    BoundedSeq,
    Duration,
    Expression,
    Minus,
    Name,
    Seq,
    Within,
    with_operands,
)
from tidegate.rules.expressions.parser import parse
from tidegate.rules.model import Context


def seconds(number: int) -> Duration:
    return Duration(0, number * SECOND)


def written(node: Expression) -> Expression:
    """With `;` for the bounded sequence."""
    plain = with_operands(node, [written(operand) for operand in node.operands()])
    return Seq(plain.first, plain.then) if isinstance(plain, BoundedSeq) else plain


def test_example_6_1_of_carlson_and_lisper() -> None:
    b, p, p_and_t = Name("B"), Name("P"), parse("P and T")
    assert transform(parse("(B ; B) within 2 - (P ; (P and T))")) == Transformed(
        Minus(
            Within(BoundedSeq(b, b, seconds(0)), seconds(2)),
            BoundedSeq(p, Within(p_and_t, seconds(2)), seconds(2)),
        ),
        2 * SECOND,
    )


@pytest.mark.parametrize(
    ("given_", "expected", "length"),
    [
        ("a within 2", "a", 0),
        ("((a and b) within 5) within 2", "(a and b) within 2", 2),
        ("((a and b) within 2) within 5", "(a and b) within 2", 2),
        ("(((a and b) within 2) or c) within 5", "((a and b) within 2) or c", 2),
        ("A(a and b, c, b) within 3", "A(a and b, c, b)", 0),
        ("any(2, (a within 0)*)", "any(2, (a within 0)*)", None),
        ("not(b)[a, [5]]", "not(b)[a, [5]]", 5),
        ("every(2, (a and b) within 4) within 1", "every(2, (a and b) within 4) within 1", 1),
    ],
)
def test_restrictions_go_where_they_say_something(
    given_: str, expected: str, length: int | None
) -> None:
    found = transform(parse(given_))
    assert written(found.expression) == parse(expected)
    assert found.length_micros == (None if length is None else length * SECOND)


def test_months_are_taken_at_their_longest() -> None:
    found = transform(parse("(a ; (b and c)) within 1 month")).expression
    assert isinstance(found, Within)
    assert isinstance(found.part, BoundedSeq)
    assert found.duration == Duration(1, 0)
    assert found.part.duration == Duration(0, 33 * 86_400 * SECOND)


def test_a_rules_detections_may_have_any_length() -> None:
    assert transform(parse("r within 2"), rules={"r"}) == (parse("r within 2"), 2 * SECOND)


def found_in(expression: Expression, seeing: World) -> list[Instance]:
    with small():
        return detections(expression, seeing, Context.RESTRICTED)


@detecting
@given(
    expressions(EVERYTHING, depth=3),
    st.none() | st.integers(1, 4).map(lambda s: s * SECOND),
    st.data(),
)
@example_count(120)
def test_what_is_short_enough_is_the_same(
    expression: Expression, limit: int | None, data: st.DataObject
) -> None:
    given_ = expression if limit is None else Within(expression, Duration(0, limit))
    made, length = transform(expression, limit)
    after = made if limit is None else Within(made, Duration(0, limit))
    seeing = world(data.draw(planted_seconds(given_)), given_)
    assert seen(found_in(written(after), seeing)) == seen(saw(found_in(given_, seeing)))
    if length is not None:
        assert all(i.end - i.start <= length for i in found_in(written(made), seeing))


def test_an_instant_has_no_length_whatever_it_is_made_of() -> None:
    point = transform(parse("instant(a ; b)"))
    assert point.length_micros == 0
    assert transform(parse("instant(a ; b) within 5 s")) == point
