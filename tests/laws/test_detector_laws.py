"""The detector's operators obey the laws, each side run as it is written."""

from __future__ import annotations

import json
from unittest.mock import patch

from hypothesis import given, settings

from tests.detector.history import run
from tests.laws.drawn import CASES, Case, each_law
from tests.reference.strategies import NAMES, PLACE, SECOND
from tidegate.rules.expression import Expression
from tidegate.rules.laws import LAWS, Law, Use
from tidegate.rules.model import Context, Rule, Rulebook, SignalEvent

EVENTS = {name: SignalEvent(name, PLACE, {"v": "bigint"}) for name in NAMES}


def found(on: Expression, context: Context, history: list[tuple[str, int]]) -> list[str]:
    rule = Rule("r", PLACE, on, "", context)
    book = Rulebook("laws", None, "", "UTC", {}, EVENTS, {"r": rule})
    lines = [(name, second * SECOND, {"v": None}) for name, second in sorted(history, key=str)]
    with patch("tidegate.engine.detector.detector.as_detected", lambda book: book):
        return run(book, [sorted(lines, key=lambda line: line[1])])


def spans(lines: list[str]) -> list[tuple[int, int]]:
    return sorted((found["start"], found["end"]) for found in map(json.loads, lines))


@each_law
@given(case=CASES)
@settings(max_examples=10, deadline=None)
def test_law(law: Law, case: Case) -> None:
    left, right = case.sides(law)
    both = [found(side, Context.RESTRICTED, case.history) for side in (left, right)]
    assert spans(both[0]) == spans(both[1])
    if law.instances:
        assert both[0] == both[1]
        both = [found(side, Context.UNRESTRICTED, case.history) for side in (left, right)]
        assert {*both[0]} == {*both[1]}


def test_s09_what_rewrites_keeps_the_constituents_too() -> None:
    assert all(law.instances for law in LAWS if law.use in (Use.REWRITE, Use.ORDER))
