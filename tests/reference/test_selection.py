"""Hinze & Voisard's parameters against the unrestricted meaning (semantics 6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.contexts import detections
from tests.reference.meaning import World
from tests.reference.selection import select
from tests.reference.strategies import SECOND
from tests.reference.values import Instance, Occurrence
from tidegate.rules.expression import And, Expression, Name, Seq
from tidegate.rules.model import Context, Selection

A, B = Name("a"), Name("b")
PAIRS = st.sampled_from([Seq(A, B), And((A, B))])
EARLY = settings(max_examples=200, deadline=None)
CHOICES = st.builds(
    Selection,
    first=st.sampled_from(["first", "last", "all"]),
    then=st.sampled_from(["first", "all"]),
    pairs=st.sampled_from(["unique", "all"]),
    repeat=st.booleans(),
)


def world(history: Iterable[tuple[str, int]]) -> World:
    found: dict[Any, list[Occurrence]] = {"a": [], "b": []}
    for name, second in history:
        found[name].append(Occurrence(name, name, second * SECOND, second * SECOND))
    return World(found, 10 * SECOND)


WORLDS = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 5)), max_size=8).map(world)


def shown(instances: Iterable[Instance]) -> set[Any]:
    return {(i.start, i.end, i.constituents()) for i in instances}


@EARLY
@given(PAIRS, WORLDS)
def test_all_of_both_in_every_later_run_is_unrestricted(on: Expression, seeing: World) -> None:
    how = Selection(first="all", then="all", pairs="all")
    everything = detections(on, seeing, Context.UNRESTRICTED)
    assert shown(select(on, how, seeing)) == shown(everything)


@EARLY
@given(PAIRS, WORLDS, CHOICES)
def test_a_choice_is_among_the_unrestricted(on: Expression, seeing: World, how: Selection) -> None:
    everything = detections(on, seeing, Context.UNRESTRICTED)
    assert shown(select(on, how, seeing)) <= shown(everything)


@EARLY
@given(WORLDS)
def test_first_first_unique_repeated_uses_an_occurrence_once(seeing: World) -> None:
    how = Selection(first="first", then="first", pairs="unique", repeat=True)
    found = select(Seq(A, B), how, seeing)
    held = [o for instance in found for o in instance.occurrences()]
    assert len(held) == len(set(held))
