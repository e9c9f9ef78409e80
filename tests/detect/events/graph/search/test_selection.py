"""Hinze & Voisard's parameters (semantics 6, S12) against the reference; the printed examples are
among the golden ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.cuts import cuts, everywhere
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import planted, untils
from tests.reference.strategies import SECOND, expected
from tests.support.history import run
from tests.support.rulebooks import altered, over_signals
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Context, Rulebook, Selection

PICKS = st.sampled_from(["first", "last", "all"])
EARLY = st.builds(
    Selection,
    first=PICKS,
    then=st.sampled_from(["first", "all"]),
    pairs=st.sampled_from(["unique", "all"]),
    repeat=st.booleans(),
)
AT_END = st.builds(
    Selection,
    first=PICKS,
    then=PICKS,
    pairs=st.sampled_from(["unique", "all"]),
    repeat=st.booleans(),
    evaluate=st.just("at_end"),
)
ENDLESS = ["a ; b", "a and b", "(a and b) - c", "(a ; c) ; b", "a ; (b + [1 s])", "a[2] ; b"]
BOUNDED = [
    "a ; b within 3 s",
    "a and b within 2 s",
    "((a ; c) and b) within 4 s",
    "((a or c) ; b within 3 s) - c",
    "(a ; b within 2 s) within 4 s",
    "(a ; [1 s]) ; b within 3 s",
    "((a ; c within 2 s) ; b) within 3 s",
]
PAIRS = st.one_of(
    st.tuples(st.sampled_from(ENDLESS + BOUNDED), EARLY),
    st.tuples(st.sampled_from(BOUNDED), AT_END),
)


def selecting(on: str, how: Selection, keys: tuple[str, ...] = ()) -> Rulebook:
    rulebook = over_signals(on, Context.RESTRICTED, keys)
    return replace(rulebook, rules={"r": altered(rulebook.rules["r"], selection=how)})


@detecting
@given(pair=PAIRS, keys=st.sampled_from([(), ("k",)]), data=st.data())
@example_count(80)
def test_s12_selections_are_those_of_the_reference_for_any_cut(
    pair: tuple[str, Selection], keys: tuple[str, ...], data: st.DataObject
) -> None:
    rulebook = selecting(*pair, keys)
    history = data.draw(planted(rulebook, 12))
    until = data.draw(untils(history))
    answer = saw(expected(rulebook, history, until=until))
    assert run(rulebook, history, until=until) == answer
    assert run(rulebook, history, data.draw(cuts(rulebook, history)), until) == answer


def test_s12_a_run_is_remembered_while_one_of_it_may_be_paired() -> None:
    how = Selection(first="first", then="all", pairs="unique")
    rulebook = selecting("a ; b within 5 s", how)
    history = [(name, t * SECOND, {"v": 0}) for name, t in [("a", 1), ("a", 5), ("b", 6), ("b", 9)]]
    # the first of the run has b@6 as a partner: it is taken, and a@5 is not
    assert len(expected(rulebook, history)) == 1
    assert run(rulebook, history) == expected(rulebook, history)
    for cut in everywhere(rulebook, history):
        assert run(rulebook, history, cut) == expected(rulebook, history)


def test_s12_the_outermost_within_is_the_span() -> None:
    how = Selection(first="first", then="last", pairs="unique", evaluate="at_end")
    rulebook = selecting("(a ; b within 3 s) - c within 5 s", how)
    history = [(name, t * SECOND, {"v": 0}) for name, t in [("a", 1), ("b", 3), ("b", 4)]]
    assert run(rulebook, history) == expected(rulebook, history)


def test_what_no_pair_can_hold_any_more_is_forgotten() -> None:
    how = Selection(first="first", then="all", pairs="unique")
    rulebook = selecting("a ; b within 1 s", how, ("k",))
    rulebook = replace(rulebook, settings=replace(rulebook.settings, carried_per_key_max=10))
    history = [("ab"[t % 2], t * SECOND, {"k": 1, "v": 0}) for t in range(40)]
    for cut in everywhere(rulebook, history):
        assert len(run(rulebook, history, cut)) == 20


@pytest.mark.parametrize("on", ["a or b", "a ; [5 s]", "a ; b"])
def test_a_selection_that_cannot_stand_is_refused_by_name(on: str) -> None:
    rulebook = selecting(on, Selection(evaluate="at_end"))
    with pytest.raises(EngineError, match="at_end with a `within`"):
        run(rulebook, [("a", 0, {"v": 0})])
