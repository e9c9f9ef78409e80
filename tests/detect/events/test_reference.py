"""The detector finds what the reference finds, interval and constituents, however it is cut."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.cuts import everywhere
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import detecting, drawn_for, resuming, saw
from tests.reference.planted import cases, untils
from tests.reference.strategies import (
    EVERYTHING,
    Operator,
    compared_windows,
    expected,
    rooted,
)
from tests.support.agreement import check
from tests.support.history import run
from tidegate.rules.model import Context, Rulebook, in_context

CASES = {context: 150 if context is Context.RESTRICTED else 60 for context in Context}


def books(depth: int) -> st.SearchStrategy[tuple[Rulebook, list[Line]]]:
    """One rule, or two of which the second may use the first as an event."""
    return cases(operators=EVERYTHING, contexts=list(Context), depth=depth, rules_max=2)


@pytest.mark.parametrize("context", Context)
@resuming
@detecting
def test_detections_are_those_of_the_reference_for_any_cut(context: Context) -> None:
    @drawn_for(context)
    @given(data=st.data())
    @example_count(CASES[context], least=5)
    def some(data: st.DataObject) -> None:
        depth = data.draw(st.sampled_from([2, 3]))
        check(context, data.draw(books(depth)), data)

    some()


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("context", Context)
@resuming
@detecting
@given(data=st.data())
@example_count(100_000 // 18 + 1)
def test_a_hundred_thousand_cases_are_those_of_the_reference(
    context: Context, depth: int, data: st.DataObject
) -> None:
    check(context, data.draw(books(depth)), data)


def windows() -> st.SearchStrategy[tuple[Rulebook, list[Line]]]:
    return cases(contexts=list(Context), rules_max=2, last=compared_windows)


@pytest.mark.parametrize("context", Context)
@resuming
@detecting
def test_s04_a_window_is_closed_by_the_composite_of_lowest_rank(context: Context) -> None:
    @drawn_for(context)
    @given(data=st.data())
    @example_count(80 if context is Context.RESTRICTED else 30)
    def some(data: st.DataObject) -> None:
        check(context, data.draw(windows()), data)

    some()


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("context", Context)
@resuming
@detecting
@given(data=st.data())
@example_count(3_000)
def test_s04_in_thousands_of_cases(context: Context, data: st.DataObject) -> None:
    check(context, data.draw(windows()), data)


@pytest.mark.parametrize("operators", [rooted()[::2], rooted()[1::2]], ids=["some", "others"])
@detecting
def test_every_operator_in_every_context_finds_the_same_however_time_goes_on(
    operators: list[Operator],
) -> None:
    @given(data=st.data())
    @example_count(10)
    def some(operator: Operator, data: st.DataObject) -> None:
        rulebook, history = data.draw(cases(operators=EVERYTHING, depth=1, root=operator))
        until = data.draw(untils(history))
        for context in (Context.RESTRICTED, data.draw(st.sampled_from(Context))):
            rules = {name: in_context(rule, context) for name, rule in rulebook.rules.items()}
            book = replace(rulebook, rules=rules)
            answer = saw(expected(book, history, until=until))
            for cut in everywhere(book, history):
                assert run(book, history, cut, until) == answer

    for operator in operators:
        some(operator)
