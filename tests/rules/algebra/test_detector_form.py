"""The form that is detected means the same in every context, shows the same, and forgets more."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from tests.reference.alone import seconds, seen, spans, world
from tests.reference.contexts import detections
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw, small
from tests.reference.strategies import EVERYTHING, PLACE, SECOND, expressions
from tests.rules.algebra.test_transformation import written
from tidegate import rules
from tidegate.rules.algebra.bound import bound
from tidegate.rules.algebra.detector_form import as_detected, detected
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.nodes import Expression, Labelled
from tidegate.rules.expressions.parser import parse
from tidegate.rules.model import Context, Pattern, Rule, Selection


def rule(on: Expression, selection: Selection | None = None) -> Rule:
    return Rule("r", PLACE, Pattern(on, "", Context.RESTRICTED, selection))


def form(on: str) -> str:
    return format_expression(detected(rule(parse(on)).pattern))


@pytest.mark.parametrize(
    ("on", "run"),
    [
        ("(b ; c) and a within 5", "(a and (b ; c)) within 5 s"),
        ("a ; (b ; c)", "a ; b ; c"),
        ("a within 5", "a"),
        ("((a and b) within 5) - (b ; c)", "(a and b) without (b ; c) within 5 s"),
        ("(a and b) - (b ; c)", "(a and b) without (b ; c)"),
        ("not(b ; c)[a, [5]]", "not((b ; c) within 5 s)[a, [5 s]]"),
        ("A(a, b and c, [5])", "A(a, (b and c) within 5 s, [5 s])"),
        ("A*(a, b, [5])", "A*(a, b, [5 s])"),
        ("L: (b) and M: (a)", "L:(b) and M:(a)"),
        ("a or L: (b - b)", "a or L:(b without b)"),
    ],
)
def test_what_is_detected(on: str, run: str) -> None:
    assert form(on) == run
    assert labels(detected(rule(parse(on)).pattern)) == labels(parse(on))


def labels(expression: Expression) -> list[str]:
    return [node.label for node in expression.walk() if isinstance(node, Labelled)]


def test_s12_the_first_operand_stays_the_first() -> None:
    on = parse("b and a")
    assert detected(rule(on, Selection("first", "last", "unique")).pattern) == on
    assert detected(rule(on).pattern) == parse("a and b")


@pytest.mark.parametrize(
    ("on", "seconds"),
    [
        ("((a and b) within 5) - (b ; c)", 5),
        ("not(b ; c)[a, [5]]", 5),
        ("A(a, b and c, [5])", 5),
        ("A*(a, b ; c, [5])", 5),
    ],
)
def test_g13_what_is_only_looked_at_is_forgotten_with_what_looks(on: str, seconds: int) -> None:
    assert bound(parse(on), Context.RESTRICTED).forgets_micros is None
    found = bound(detected(rule(parse(on)).pattern), Context.RESTRICTED)
    assert found.forgets_micros == seconds * SECOND


@detecting
@given(expressions(EVERYTHING, depth=3), st.data())
@example_count(60, suppress_health_check=[HealthCheck.filter_too_much])
def test_s09_every_context_detects_the_same(on: Expression, data: st.DataObject) -> None:
    run = written(detected(rule(on).pattern))
    assert {*labels(run)} == {*labels(on)}
    assume(run != on)
    seeing = world(data.draw(seconds(on)), on)
    for context in Context:
        with small():
            before, after = (detections(e, seeing, context) for e in (on, run))
        assert seen(after) == seen(saw(before)), context
        assert sorted(spans(after)) == sorted(spans(before)), context


def test_the_whole_rulebook() -> None:
    book = rules.load("rulebook: r\nevents:\n  a: {signal: {}}\nrules:\n  r: {on: a within 5}\n")
    assert format_expression(as_detected(book).rules["r"].pattern.on) == "a"
    assert as_detected(book).rules["r"].pattern.context is Context.RESTRICTED
