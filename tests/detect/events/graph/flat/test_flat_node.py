"""Flat expressions: what each context detects is what the reference detects, for any cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.cuts import cuts
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import planted
from tests.reference.strategies import SECOND, expected, written
from tests.support.history import run
from tests.support.rulebooks import over_signals
from tests.support.shown import found
from tidegate.engine.detect.events.graph.flat.flat_node import Flat
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.expressions.nodes import (
    And,
    AnyOf,
    AnyRepeat,
    Duration,
    Expression,
    Labelled,
    Minus,
    Name,
    Not,
    Or,
    Seq,
    Within,
)
from tidegate.rules.model import Context

CHOOSING = (Context.RECENT, Context.CHRONICLE, Context.CONTINUOUS, Context.CUMULATIVE)
NAMES = ("a", "b", "c", "d")
Draw = st.DrawFn


@st.composite
def flat(draw: Draw, names: tuple[str, ...], *, every: bool) -> Expression:
    """Stages in sequence over these event types; `every`: such as `recent` has a kernel for."""
    cut = draw(st.sets(st.integers(1, len(names) - 1))) if len(names) > 1 else set()
    edges = [0, *sorted(cut), len(names)]
    parts = [draw(stage(names[a:b], every=every and len(edges) > 2)) for a, b in pairwise(edges)]
    while len(parts) > 1:
        at = draw(st.integers(0, len(parts) - 2))
        parts[at : at + 2] = [Seq(parts[at], parts[at + 1])]
    return parts[0]


@st.composite
def stage(draw: Draw, names: tuple[str, ...], *, every: bool) -> Expression:
    leaves: tuple[Expression, ...] = tuple(map(Name, names))
    if len(names) == 1:
        count = draw(st.integers(0, 3))
        return AnyRepeat(count, leaves[0]) if count else leaves[0]
    kind = draw(st.sampled_from(["and"] if every else ["and", "any", "or"]))
    if kind == "and":
        return And(leaves)
    if kind == "any":
        return AnyOf(draw(st.integers(1, len(names))), leaves)
    return Or(leaves)


@st.composite
def filtered(draw: Draw, *, recent: bool) -> Expression:
    names = NAMES[: draw(st.integers(1, 4))]
    kind = draw(st.sampled_from(["", "", "minus", "not"])) if len(names) > 1 else ""
    if kind == "not" and len(names) > 2:
        closer = draw(flat(names[2:], every=recent))
        on: Expression = Not(Name(names[1]), Name(names[0]), closer)
    elif kind:
        on = Minus(draw(flat(names[:-1], every=recent)), Name(names[-1]))
    else:
        on = draw(flat(names, every=recent))
    if draw(st.booleans()):
        on = Within(on, Duration(0, draw(st.integers(0, 5)) * SECOND))
    return Labelled("L", on) if draw(st.booleans()) else on


@pytest.mark.parametrize("context", CHOOSING)
@detecting
@given(data=st.data())
@example_count(40)
def test_flat_expressions_are_those_of_the_reference_for_any_cut(
    context: Context, data: st.DataObject
) -> None:
    on = data.draw(filtered(recent=context is Context.RECENT))
    rulebook = over_signals(written(on), context, data.draw(st.sampled_from([(), ("k",)])))
    history = data.draw(planted(rulebook, 14))
    answer = saw(expected(rulebook, history))
    assert run(rulebook, history) == answer
    assert run(rulebook, history, data.draw(cuts(rulebook, history))) == answer


@st.composite
def chained(draw: Draw) -> Expression:
    """A sequence of event types, some of them twice, with a `within` around what comes first."""
    names = draw(st.lists(st.sampled_from(NAMES[:3]), min_size=2, max_size=4))
    on: Expression = Name(names[0])
    for name in names[1:]:
        on = Seq(on, Name(name))
        if draw(st.integers(0, 2)) == 0:
            on = Within(on, Duration(0, draw(st.integers(1, 4)) * SECOND))
    absent = draw(st.sampled_from(["", "", "d", *({*"abc"} - {*names})]))
    return Minus(on, Name(absent)) if absent else on


@pytest.mark.parametrize("context", CHOOSING)
@detecting
@given(data=st.data())
@example_count(60, least=5)
def test_s03_sequences_of_a_type_twice_are_those_of_the_reference_for_any_cut(
    context: Context, data: st.DataObject
) -> None:
    rulebook = over_signals(
        written(data.draw(chained())), context, data.draw(st.sampled_from([(), ("k",)]))
    )
    history = data.draw(planted(rulebook, 14))
    answer = saw(expected(rulebook, history))
    assert run(rulebook, history) == answer
    assert run(rulebook, history, data.draw(cuts(rulebook, history))) == answer


@pytest.mark.parametrize("context", CHOOSING)
@pytest.mark.parametrize(
    "on",
    [
        "a ; a ; a within 5 s",
        "(a ; b ; a) - c",
        "any(3, a*)",
        "a and b and c",
        "any(2, a, b, c)",
        "not(b)[a, c]",
        "(a ; c within 2) - b",
        "a ; (b and c) within 5 s",
    ],
)
def test_flat_expressions_are_not_searched(on: str, context: Context) -> None:
    rulebook = over_signals(on, context, ("k",))
    shapes = {type(n.shape) for n in Detector(rulebook, {"r": 0}).graph.nodes.values()}
    assert Flat in shapes


@pytest.mark.parametrize("context", [c for c in CHOOSING if c is not Context.CUMULATIVE])
@pytest.mark.parametrize(
    "on", ["(a ; b within 5) ; c within 9", "((a ; b within 2) ; a within 5) ; c"]
)
def test_a_within_around_what_comes_first_is_not_searched(on: str, context: Context) -> None:
    rulebook = over_signals(on, context, ("k",))
    assert isinstance(Detector(rulebook, {"r": 0}).graph.roots["r"].shape, Flat)


@pytest.mark.parametrize("context", CHOOSING)
@pytest.mark.parametrize("on", ["(a ; b within 2) ; c", "((a ; b within 2) ; a) ; c within 9"])
def test_what_begins_too_early_for_a_within_around_what_comes_first_is_in_nothing(
    on: str, context: Context
) -> None:
    slow = [("a", 1), ("b", 4), ("a", 5), ("c", 6)]
    quick = [(name, second + 9) for name, second in slow if name != "b"]
    assert found(on, context, slow) == []
    assert len(found(on, context, [*slow, ("a", 10), ("b", 12), *quick[1:]])) == 1


@pytest.mark.parametrize("context", CHOOSING)
def test_s05_equal_rows_in_several_stages_are_two_occurrences(context: Context) -> None:
    rulebook = over_signals("a ; a ; a ; b", context, ())
    seen = [("a", 0), ("a", 1), ("a", 1), ("a", 2), ("a", 3), ("b", 4), ("b", 4)]
    history = [(name, second * SECOND, {"v": 0}) for name, second in seen]
    assert run(rulebook, history) == expected(rulebook, history)


@pytest.mark.parametrize("context", CHOOSING)
def test_simultaneous_occurrences_keep_their_order_over_a_cut(context: Context) -> None:
    rulebook = over_signals("(a and b) ; c", context, ())
    history = [(name, second * SECOND, {"v": 0}) for name, second in [("a", 0), ("b", 0), ("c", 1)]]
    assert run(rulebook, history, [0]) == expected(rulebook, history)


def test_a_union_lists_what_is_simultaneous_in_order_of_rank_whatever_its_stage() -> None:
    rulebook = over_signals("a ; (b and c)", Context.CUMULATIVE, ())
    seen = [("a", 0), ("a", 2), ("b", 2), ("b", 3), ("c", 3)]
    history = [(name, second * SECOND, {"v": 0}) for name, second in seen]
    assert run(rulebook, history) == expected(rulebook, history)
