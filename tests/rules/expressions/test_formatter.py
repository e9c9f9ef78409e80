"""The canonical text is read back as the same tree; so is the text with plain names."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tests.rules.strategies import expressions
from tidegate import parse
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.formatter import format_expression, format_written


@example_count(400)
@given(expressions)
def test_round_trip(node: x.Expression) -> None:
    text = format_expression(node)
    assert parse(text) == node
    assert format_expression(parse(text)) == text


@example_count(200)
@given(expressions)
def test_operands_can_be_replaced_by_themselves(node: x.Expression) -> None:
    assert x.with_operands(node, list(node.operands())) == node


def test_with_operands_keeps_their_order() -> None:
    node = parse("not(b)[a, c]")
    swapped = x.with_operands(node, [x.Name(f"{n.name}1") for n in node.operands()])  # type: ignore[attr-defined]
    assert swapped == parse("not(b1)[a1, c1]")


@pytest.mark.parametrize(
    "text",
    [
        "during(a, b, c)",
        "collect(a, b, [5 min])",
        "ticks(a, [5 s]: q, c)",
        "a then no b for 1 h",
        "a ; b then no (c or d) for 1 h",
        "(a then no b for 1 h) ; c",
        "(x ; (a then no during(a, b, c) for 1 h)) within 5 h",
        "fa(a, b ; c, d or e)",
        "faAbs(L:(a), b, c) within 5 min",
        "times(3, b, a, c) or relative(a, b[3])",
        "relative(a, b) ; prior(b, c) ; choose(2, a)",
        "x ; prior(b, instant(c))",
        "A(a, b, c) or A*(a, b, c) or P(a, [5 s], c) or not(b)[a, [1 h]]",
    ],
)
def test_plain_names_are_written_as_they_were(text: str) -> None:
    assert format_written(parse(text)) == text


def test_digests_do_not_know_plain_names() -> None:
    text = "during(a, collect(a, b, c), ticks(a, [5 s], c)) then no b for 1 h"
    assert format_expression(parse(text)) == "not(b)[A(a, A*(a, b, c), P(a, [5 s], c)), [1 h]]"


_WORDS = {x.Aperiodic: "during", x.AperiodicStar: "collect", x.Periodic: "ticks", x.Not: "no"}


@example_count(400)
@given(expressions, st.randoms(use_true_random=False))
def test_plain_names_round_trip(node: x.Expression, random: Random) -> None:
    def named(e: x.Expression) -> x.Expression:
        own = not isinstance(e, x.Not) or isinstance(e.closer, x.Own)
        word = _WORDS.get(type(e), "") if own and random.random() < 0.5 else ""
        return replace(x.with_operands(e, list(map(named, e.operands()))), word=word)

    given_words = named(node)
    text = format_written(given_words)
    assert parse(text) == node
    assert [e.word for e in parse(text).walk()] == [e.word for e in given_words.walk()]
