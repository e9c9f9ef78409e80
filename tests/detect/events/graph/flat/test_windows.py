"""`A*` over event types: what each context detects is what the reference detects, for any cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.detect.events.graph.flat.test_flat_node import CHOOSING
from tests.reference.cuts import cuts
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import planted, untils
from tests.reference.strategies import expected
from tests.support.history import run
from tests.support.rulebooks import over_signals
from tidegate.engine.detect.events.graph.flat.window_node import Windows
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.model import Context

WINDOWS = (
    "A*(a, b, c)",
    "A*(b, a, c)",
    "A*(b, a, [2 s])",
    "A*(a, b, [3 s])",
    "A*(a, b, c) within 3 s",
    "A*(c, b, a) - d",
    "A*(b, a, [3 s]) - c within 5 s",
    "A*(a, b, [3 s]) within 4 s",
)


@pytest.mark.parametrize("context", CHOOSING)
@detecting
@given(data=st.data())
@example_count(30)
def test_s04_windows_are_those_of_the_reference_for_any_cut(
    context: Context, data: st.DataObject
) -> None:
    on = data.draw(st.sampled_from(WINDOWS))
    rulebook = over_signals(on, context, data.draw(st.sampled_from([(), ("k",)])))
    history = data.draw(planted(rulebook, 16))
    until = data.draw(untils(history))
    answer = saw(expected(rulebook, history, until=until))
    assert run(rulebook, history, until=until) == answer
    assert run(rulebook, history, data.draw(cuts(rulebook, history)), until) == answer


@pytest.mark.parametrize("context", CHOOSING)
@pytest.mark.parametrize("on", WINDOWS)
def test_windows_are_not_searched(on: str, context: Context) -> None:
    graph = Detector(over_signals(on, context, ("k",)), {"r": 0}).graph
    assert isinstance(graph.roots["r"].shape, Windows)
