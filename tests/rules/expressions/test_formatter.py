"""The canonical text is read back as the same tree."""

from __future__ import annotations

from hypothesis import given

from tests.reference.examples import example_count
from tests.rules.strategies import expressions
from tidegate import parse
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.formatter import format_expression


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
