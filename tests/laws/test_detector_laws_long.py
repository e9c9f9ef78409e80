"""The detector's operators obey the laws, each side run as it is written."""

from __future__ import annotations

import json
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.expression import Expression
from rules.laws import LAWS, Law, Use
from rules.model import Context, Rule, Rulebook, SignalEvent
from tests.detector.history import run
from tests.laws.table import sides
from tests.reference.strategies import CARLSON_LISPER, NAMES, PLACE, SECOND, expressions

VARIABLES = expressions(CARLSON_LISPER, depth=1)
EVENTS = {name: SignalEvent(name, PLACE, {"v": "bigint"}) for name in NAMES}


def found(on: Expression, context: Context, history: list[tuple[str, int]]) -> list[str]:
    rule = Rule("r", PLACE, on, "", context)
    book = Rulebook("laws", None, "", "UTC", {}, EVENTS, {"r": rule})
    lines = [(name, second * SECOND, {"v": None}) for name, second in sorted(history, key=str)]
    with patch("engine.detector.detector.as_detected", lambda book: book):
        return run(book, [sorted(lines, key=lambda line: line[1])])


def spans(lines: list[str]) -> list[tuple[int, int]]:
    return sorted((found["start"], found["end"]) for found in map(json.loads, lines))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@given(
    x=VARIABLES,
    y=VARIABLES,
    z=VARIABLES,
    s=st.integers(0, 5),
    t=st.integers(0, 5),
    history=st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 5)), max_size=8),
)
@settings(max_examples=150, deadline=None)
def test_law(
    law: Law,
    x: Expression,
    y: Expression,
    z: Expression,
    s: int,
    t: int,
    history: list[tuple[str, int]],
) -> None:
    left, right = sides(law, {"x": x, "y": y, "z": z}, s, t)
    both = [found(side, Context.RESTRICTED, history) for side in (left, right)]
    assert spans(both[0]) == spans(both[1])
    if law.instances:
        assert both[0] == both[1]
        both = [found(side, Context.UNRESTRICTED, history) for side in (left, right)]
        assert {*both[0]} == {*both[1]}


def test_s09_what_rewrites_keeps_the_constituents_too() -> None:
    assert all(law.instances for law in LAWS if law.use in (Use.REWRITE, Use.ORDER))
