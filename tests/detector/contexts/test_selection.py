"""Hinze & Voisard's parameters (semantics 6, S12): the printed examples, and the reference."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.model import Context, Selection
from tests.detector.contexts.test_contexts import signals
from tests.detector.history import run
from tests.golden.load import Case, cases
from tests.reference.evaluate import canonical
from tests.reference.strategies import cuts, expected, histories

SELECTIONS = st.builds(
    Selection,
    first=st.sampled_from(["first", "last", "all"]),
    then=st.sampled_from(["first", "all"]),
    pairs=st.sampled_from(["unique", "all"]),
    repeat=st.booleans(),
)
PAIRS = st.sampled_from(["a ; b", "a and b", "a ; b within 3 s", "(a and b) - c", "(a ; c) ; b"])


def early(case: Case) -> bool:
    """Whether nothing has to wait for the end of a span."""
    selections = [rule.selection for rule in case.rulebook.rules.values()]
    return None in case.expected and all(s and s.evaluate == "early" for s in selections)


@pytest.mark.parametrize("case", [c for c in cases("selection.txt") if early(c)], ids=str)
def test_s12_printed_examples(case: Case) -> None:
    assert run(case.rulebook, [list(case.history)]) == canonical(case.expected[None])


@given(on=PAIRS, how=SELECTIONS, keys=st.sampled_from([(), ("k",)]), data=st.data())
@settings(max_examples=300, deadline=None)
def test_s12_selections_are_those_of_the_reference_for_any_cut(
    on: str, how: Selection, keys: tuple[str, ...], data: st.DataObject
) -> None:
    rulebook = signals(on, Context.RESTRICTED, keys)
    rulebook = replace(rulebook, rules={"r0": replace(rulebook.rules["r0"], selection=how)})
    history = data.draw(histories(rulebook, lines_max=12))
    answer = expected(rulebook, history)
    whole = sorted(history, key=lambda line: line[1])
    assert run(rulebook, [whole]) == answer
    assert run(rulebook, data.draw(cuts(history))) == answer
