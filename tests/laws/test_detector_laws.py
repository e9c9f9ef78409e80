"""The detector's operators obey the laws, each side run as it is written."""

from __future__ import annotations

import json
from dataclasses import replace
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tests.laws.drawn import cases, each_law
from tests.reference.alone import History, alone
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.strategies import SECOND
from tests.support.history import run
from tidegate.rules.algebra.laws import LAWS, Law, Use
from tidegate.rules.expressions.nodes import Expression
from tidegate.rules.model import Context, in_context


def found(on: Expression, context: Context, history: History) -> list[str]:
    book = alone(on)
    book = replace(book, rules={"r": in_context(book.rules["r"], context)})
    lines = [(name, second * SECOND, {"v": None}) for name, second in sorted(history, key=str)]
    with patch("tidegate.engine.detect.events.step.compile.as_detected", lambda book: book):
        return saw(run(book, lines))


def spans(lines: list[str]) -> list[tuple[int, int]]:
    return sorted((found["start"], found["end"]) for found in map(json.loads, lines))


@each_law
@detecting
@given(data=st.data())
@example_count(6, least=5)
def test_law(law: Law, data: st.DataObject) -> None:
    case = data.draw(cases(law))
    both = [found(side, Context.RESTRICTED, case.history) for side in (case.left, case.right)]
    assert spans(both[0]) == spans(both[1])
    if law.instances:
        assert both[0] == both[1]
        left, right = (
            found(side, Context.UNRESTRICTED, case.history) for side in (case.left, case.right)
        )
        assert {*left} == {*right}


def test_s09_what_rewrites_keeps_the_constituents_too() -> None:
    assert all(law.instances for law in LAWS if law.use in (Use.REWRITE, Use.ORDER))
