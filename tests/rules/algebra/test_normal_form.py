"""Normal forms keep the meaning, in every context, and make equal what the laws call equal."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from tests.reference.alone import seconds, seen, spans, world
from tests.reference.contexts import detections
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw, small
from tests.reference.strategies import CARLSON_LISPER, EVERYTHING, expressions
from tidegate.rules.algebra.normal_form import normalise
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.nodes import Expression
from tidegate.rules.expressions.parser import parse
from tidegate.rules.model import Context


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("c or (b or a) or b", "a or b or c"),
        ("(c and a) and b", "a and b and c"),
        ("a and a", "a and a"),
        ("a ; (b ; c)", "a ; b ; c"),
        ("(a - b) - c - b", "a without (b or c)"),
        ("(a ; b) within 5 within 3", "(a ; b) within 3 s"),
        ("(a ; b) within 1 month within 30 days", "(a ; b) within 1 month within 30 days"),
        ("(a ; b) within 3 - c", "(a ; b) without c within 3 s"),
        ("(a ; b) within 3 - (c within 3)", "(a ; b) without c within 3 s"),
        ("(b ; a) or (a and b) or c", "(a and b) or c"),
        ("(a and b) or (a and b within 2)", "a and b"),
        ("a - (b or (b ; c))", "a without b"),
        ("a or (b - b)", "a"),
        ("a ; not(b)[a, b]", "not(b)[a, b]"),
        ("any(2, (a or a)*)", "any(2, a*)"),
        ("any(2, (b or a)*)", "any(2, (a or b)*)"),
        ("any(2, ((a within 5) or a)*)", "any(2, ((a within 5 s) or a)*)"),
        ("every(2, (b or a) - (c - c))", "every(2, (b or a) without (c without c))"),
        ("(b or a) ; ((a or b) + [5])", "(b or a) ; (a or b) + [5 s]"),
    ],
)
def test_normal_form(written: str, normal: str) -> None:
    assert format_expression(normalise(parse(written))) == normal


@pytest.mark.parametrize(
    "operators", [CARLSON_LISPER, EVERYTHING], ids=["Carlson and Lisper", "everything"]
)
@detecting
@given(data=st.data())
@example_count(60, suppress_health_check=[HealthCheck.filter_too_much])
def test_s09_the_normal_form_means_the_same(
    operators: tuple[type[Expression], ...], data: st.DataObject
) -> None:
    expression = data.draw(expressions(operators, depth=3))
    normal = normalise(expression)
    assert parse(format_expression(normal)) == normal
    assert normalise(normal) == normal
    assume(normal != expression)
    seeing = world(data.draw(seconds(expression)), expression)
    for context in Context:
        with small():
            before, after = (detections(e, seeing, context) for e in (expression, normal))
        assert seen(after) == seen(saw(before)), context
        assert sorted(spans(after)) == sorted(spans(before)), context
