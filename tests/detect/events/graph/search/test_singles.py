"""Expressions whose instances are single occurrences, in every context, without a search."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.cuts import cuts
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import planted, untils
from tests.reference.strategies import expected
from tests.support.history import run
from tests.support.rulebooks import over_signals
from tidegate.engine.detect.events.graph.search.choice import Choice
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.model import Context

SINGLE = (
    "a or b",
    "A(a, b, c)",
    "A(a, b or d, c)",
    "A(a, b, b)",
    "A(a ; b, c, b)",
    "A(a, b, [2 s])",
    "a ; [2 s]",
    "not(b)[a, [2 s]]",
    "not(a)[a or b, [3 s]]",
    "(a or b) - c",
    "A(c, a ; [1 s], d) - b",
    "L: (a - (b ; c))",
)


@pytest.mark.parametrize("context", [c for c in Context if c is not Context.RESTRICTED])
@detecting
@given(data=st.data())
@example_count(25)
def test_single_occurrences_are_those_of_the_reference_for_any_cut(
    context: Context, data: st.DataObject
) -> None:
    on = data.draw(st.sampled_from(SINGLE))
    rulebook = over_signals(on, context, data.draw(st.sampled_from([(), ("k",)])))
    history = data.draw(planted(rulebook, 14))
    until = data.draw(untils(history))
    answer = saw(expected(rulebook, history, until=until))
    assert run(rulebook, history, until=until) == answer
    assert run(rulebook, history, data.draw(cuts(rulebook, history)), until) == answer


@pytest.mark.parametrize("context", Context)
@pytest.mark.parametrize("on", SINGLE)
def test_single_occurrences_are_not_searched(on: str, context: Context) -> None:
    graph = Detector(over_signals(on, context, ("k",)), {"r": 0}).graph
    assert not any(isinstance(node.shape, Choice) for node in graph.nodes.values())
