"""Every context detects what the reference detects, interval and constituents, for any cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.model import Context
from tests.detector.history import run
from tests.reference.strategies import FIRST_SLICE, cases, cuts, expected

CHOOSING = [context for context in Context if context is not Context.RESTRICTED]


@pytest.mark.parametrize("context", CHOOSING)
@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_detections_are_those_of_the_reference_for_any_cut(
    context: Context, data: st.DataObject
) -> None:
    rulebook, history = data.draw(cases(operators=FIRST_SLICE, contexts=[context], depth=3))
    answer = expected(rulebook, history)
    whole = sorted(history, key=lambda line: line[1])
    assert run(rulebook, [whole]) == answer
    assert run(rulebook, data.draw(cuts(history))) == answer
