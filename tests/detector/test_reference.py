"""The detector finds what the reference finds, interval and constituents, however it is cut."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.detector.history import run
from tests.reference.strategies import EVERYTHING, SECOND, UNTIMED, cases, cuts, expected


@given(data=st.data())
@settings(max_examples=1000, deadline=None)
def test_detections_are_those_of_the_reference_for_any_cut(data: st.DataObject) -> None:
    rulebook, history = data.draw(cases(operators=UNTIMED, depth=3))
    answer = expected(rulebook, history)
    whole = sorted(history, key=lambda line: line[1])
    assert run(rulebook, [whole]) == answer
    assert run(rulebook, data.draw(cuts(history))) == answer


@given(data=st.data())
@settings(max_examples=1000, deadline=None)
def test_what_ends_by_itself_is_that_of_the_reference_for_any_cut(data: st.DataObject) -> None:
    rulebook, history = data.draw(cases(operators=EVERYTHING, depth=2))
    until = data.draw(st.none() | st.integers(0, 9).map(lambda second: second * SECOND))
    answer = expected(rulebook, history, until=until)
    whole = sorted(history, key=lambda line: line[1])
    assert run(rulebook, [whole], until) == answer
    assert run(rulebook, data.draw(cuts(history)), until) == answer
