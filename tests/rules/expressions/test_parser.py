"""The whole expression language as text fixtures: what is accepted, how it groups, what is said."""

from __future__ import annotations

import pytest

from tests.rules.fixtures import cases
from tidegate import parse
from tidegate.rules.errors import InputError, Place
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.parser import NESTING_MAX


@pytest.mark.parametrize(("text", "same"), cases("grouping.txt", " == "))
def test_grouping(text: str, same: str) -> None:
    assert parse(text) == parse(same)


@pytest.mark.parametrize(("text", "canonical"), cases("valid.txt", " => "))
def test_accepted(text: str, canonical: str) -> None:
    node = parse(text)
    assert format_expression(node) == canonical
    assert parse(canonical) == node


@pytest.mark.parametrize(("text", "said"), cases("invalid.txt", " => "))
def test_refused(text: str, said: str) -> None:
    column, message, hint = (part.strip() for part in f"{said} ".split(" | ", 2))
    with pytest.raises(InputError) as caught:
        parse(text, Place("bank.yaml", 7, 1, "rules.r.on"))
    problem = caught.value.problems[0]
    assert (problem.message, problem.hint) == (message, hint)
    assert problem.place == Place("bank.yaml", 7, int(column), "rules.r.on")
    line, carets = problem.excerpt.splitlines()
    assert line == text
    assert carets.index("^") + 1 == int(column)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("a ; b ; c", "a ; (b ; c)"),
        ("a or b or c", "(a or b) or c"),
        ("a without b within 5", "a without (b within 5)"),
        ("a ; b ; a + [5]", "a ; b ; [5]"),
        ("a ; L:(a + [5])", "a ; [5]"),
        ("any(2, a*)", "any(2, a)"),
        ("L:(a)", "a"),
        ("a within 30 days", "a within 1 month"),
    ],
)
def test_different_trees(left: str, right: str) -> None:
    assert parse(left) != parse(right)


def test_spans_are_where_the_text_stood() -> None:
    text = "a ; L:(b or c) within 5 min without d"
    found = {type(n): text[n.span.start : n.span.end] for n in parse(text).walk()}
    assert found[x.Seq] == "a ; L:(b or c)"
    assert found[x.Labelled] == "L:(b or c)"
    assert found[x.Or] == "b or c"
    assert found[x.Within] == "a ; L:(b or c) within 5 min"
    assert found[x.Minus] == text


def test_several_wrong_numbers_are_reported_at_once() -> None:
    with pytest.raises(InputError) as caught:
        parse("any(0, a, b) ; c[0] ; [0]")
    assert [p.place.column for p in caught.value.problems] == [5, 18, 24]


def test_lines_count_in_a_text_of_several() -> None:
    with pytest.raises(InputError) as caught:
        parse("a\n  or b\n  or or c", Place("f.yaml", 10, 5))
    problem = caught.value.problems[0]
    assert (problem.place.line, problem.place.column) == (12, 6)
    assert problem.excerpt == "  or or c\n     ^^"


def test_a_long_line_is_cut_around_the_fault() -> None:
    with pytest.raises(InputError) as caught:
        parse(" or ".join(["abc"] * 500) + " or ? or abc")
    line, carets = caught.value.problems[0].excerpt.splitlines()
    assert len(line) <= 90
    assert line[carets.index("^")] == "?"


def test_clock_literal_text_is_canonical() -> None:
    assert format_expression(parse("at < (8:0:0) */*/* >")) == "<(08:00:00)*/*/*>"


def test_parentheses_may_be_deep_but_operators_not() -> None:
    assert parse("(" * 5_000 + "a" + ")" * 5_000) == x.Name("a")
    with pytest.raises(InputError, match=f"nested deeper than {NESTING_MAX}"):
        parse(" ; ".join("a" * (NESTING_MAX + 2)))
    assert parse(" or ".join("a" * 5_000)) == x.Or((x.Name("a"),) * 5_000)


def test_the_deepest_tree_can_be_walked_compared_and_formatted() -> None:
    text = "L:(" * (NESTING_MAX - 2) + "a ; b" + ")" * (NESTING_MAX - 2)
    node = parse(text)
    assert len(list(node.walk())) == NESTING_MAX + 1
    assert parse(format_expression(node)) == node
    assert hash(node) == hash(parse(text))


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_empty(text: str) -> None:
    with pytest.raises(InputError, match="the event expression is empty"):
        parse(text)
