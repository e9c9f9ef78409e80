"""Hinze & Voisard's parameters against the unrestricted meaning (semantics 6)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.reference.alone import History, seconds, seen, world
from tests.reference.contexts import detections
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.selection import select
from tidegate.rules.expressions.nodes import And, Expression, Name, Seq
from tidegate.rules.model import Context, Selection

A, B = Name("a"), Name("b")
PAIRS = st.sampled_from([Seq(A, B), And((A, B))])
EARLY = example_count(50)
CHOICES = st.builds(
    Selection,
    first=st.sampled_from(["first", "last", "all"]),
    then=st.sampled_from(["first", "all"]),
    pairs=st.sampled_from(["unique", "all"]),
    repeat=st.booleans(),
)


PLANTED = PAIRS.flatmap(lambda on: st.tuples(st.just(on), seconds(on, "ab")))


@detecting
@EARLY
@given(PLANTED)
def test_all_of_both_in_every_later_run_is_unrestricted(case: tuple[Expression, History]) -> None:
    on, history = case
    seeing = world(history)
    how = Selection(first="all", then="all", pairs="all")
    everything = detections(on, seeing, Context.UNRESTRICTED)
    assert seen(saw(select(on, how, seeing))) == seen(everything)


@detecting
@EARLY
@given(PLANTED, CHOICES)
def test_a_choice_is_among_the_unrestricted(
    case: tuple[Expression, History], how: Selection
) -> None:
    on, history = case
    seeing = world(history)
    everything = detections(on, seeing, Context.UNRESTRICTED)
    assert seen(saw(select(on, how, seeing))) <= seen(everything)


@detecting
@EARLY
@given(seconds(Seq(A, B), "ab"))
def test_first_first_unique_repeated_uses_an_occurrence_once(history: History) -> None:
    how = Selection(first="first", then="first", pairs="unique", repeat=True)
    found = saw(select(Seq(A, B), how, world(history)))
    held = [o for instance in found for o in instance.occurrences()]
    assert len(held) == len(set(held))
