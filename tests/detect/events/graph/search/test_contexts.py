"""Every context detects what the reference detects, interval and constituents, for any cut."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.cuts import cuts, everywhere
from tests.reference.examples import example_count
from tests.reference.hits import detecting, saw
from tests.reference.planted import planted
from tests.reference.strategies import SECOND, expected
from tests.support.history import run
from tests.support.rulebooks import over_signals
from tests.support.shown import found
from tidegate.rules.model import Context

CHOOSING = [context for context in Context if context is not Context.RESTRICTED]


CHAINS = st.sampled_from(["a ; b", "a ; b ; c", "a ; (b ; c) within 3 s", "c ; a within 2 s"])


@pytest.mark.parametrize("context", CHOOSING)
@detecting
@given(data=st.data())
@example_count(15)
def test_plain_sequences_are_those_of_the_reference_for_any_cut(
    context: Context, data: st.DataObject
) -> None:
    text = data.draw(CHAINS)
    keys = data.draw(st.sampled_from([(), ("k",)]))
    rulebook = over_signals(text, context, keys)
    history = data.draw(planted(rulebook, 16))
    answer = saw(expected(rulebook, history))
    assert run(rulebook, history) == answer
    assert run(rulebook, history, data.draw(cuts(rulebook, history))) == answer


@pytest.mark.parametrize("on", ["a and a[1] within 0 s", "a and (a without b)[1]"])
@pytest.mark.parametrize("context", Context)
def test_s05_equal_rows_have_one_order_in_every_operator(on: str, context: Context) -> None:
    rulebook = over_signals(on, context, ())
    history = [("a", 0, {"v": 0}), ("a", 0, {"v": 0})]
    assert run(rulebook, history) == expected(rulebook, history)


@pytest.mark.parametrize("context", Context)
def test_s01_what_instances_share_counts_once(context: Context) -> None:
    rulebook = over_signals("any(2, any(2, (b and a)*), c) within 3 s", context, ())
    seen = [("b", 1), ("a", 1), ("c", 2), ("a", 3), ("b", 4), ("c", 5)]
    history = [(name, time * SECOND, {"v": 0}) for name, time in seen]
    assert run(rulebook, history) == expected(rulebook, history)


@pytest.mark.parametrize("on", ["every(1, a) ; b", "a[1] ; b or a[2] ; b"])
def test_s03_recent_uses_up_what_is_only_counted(on: str) -> None:
    assert len(found(on, Context.RECENT, [("a", 1), ("a", 2), ("b", 3), ("b", 4)])) == 1


def test_s03_what_is_used_up_may_turn_up_later_in_what_is_counted() -> None:
    on = "a ; b or every(2, a)"
    assert len(found(on, Context.CHRONICLE, [("a", 1), ("b", 2), ("a", 3)])) == 1
    assert len(found(on, Context.RECENT, [("a", 1), ("a", 2), ("b", 3), ("a", 4), ("a", 5)])) == 2


def test_what_is_looked_at_lasts_as_long_as_what_is_counted() -> None:
    seen = [("a", 1), ("b", 2), ("a", 4), ("c", 4)]
    assert len(found("(every(2, a) - b) or c", Context.UNRESTRICTED, seen)) == 1


def test_s03_an_instance_without_occurrences_is_detected_once() -> None:
    assert len(found("a + [2] or (a + [2] ; b)", Context.CHRONICLE, [("a", 1), ("b", 4)])) == 2
    seen = [("a", 1), ("b", 4), ("b", 5)]
    assert len(found("a + [2] ; b", Context.CHRONICLE, seen)) == 2
    assert len(found("a + [2] ; b", Context.CONTINUOUS, seen)) == 1


def test_s04_a_window_of_used_up_occurrences_is_none() -> None:
    seen = [("a", 1), ("a", 4), ("b", 5)]
    on = "A*(a, b, [5])"
    for context in (Context.RECENT, Context.CHRONICLE, Context.CUMULATIVE):
        first, second = map(json.loads, found(on, context, seen))
        assert [len(d["constituents"]) for d in (first, second)] in ([1, 0], [0, 1])
    # the c of the first window is consumed: the second is closed by the next one
    on, seen = "A*(a, b, c)", [("a", 1), ("a", 2), ("c", 3), ("b", 4), ("c", 5)]
    assert [json.loads(d)["end"] for d in found(on, Context.CHRONICLE, seen)] == [3, 5]


def test_s06_ticks_are_never_used_up() -> None:
    seen = [("a", 1), ("b", 4), ("b", 5), ("c", 6)]
    assert len(found("P(a, [2], c) ; b", Context.CHRONICLE, seen)) == 2


@pytest.mark.parametrize(
    ("on", "detected"),
    [
        ("P(a, [1 s], c)", 60),
        ("a ; [3 s]", 60),
        ("not(b)[a, [3 s]]", 60),
        ("A*(a, a, [3 s])", 60),
        ("A(a, a ; [1 s], [3 s])", 60),
        ("P*(a, [1 s], [2 s]) - b", 60),
    ],
)
def test_what_ends_by_itself_is_not_kept(on: str, detected: int) -> None:
    rulebook = over_signals(on, Context.CONTINUOUS, ())
    rulebook = replace(rulebook, settings=replace(rulebook.settings, carried_per_key_max=10))
    seconds = range(1) if on.startswith("P(") else range(60)
    lines = [("a", second * SECOND, {"v": 0}) for second in seconds]
    lines.append(("c", 60 * SECOND, {"v": 0}))
    for cut in everywhere(rulebook, lines):
        assert len(run(rulebook, lines, cut)) == detected


EVEN = "<(*:*:02)*/*/*>"


@pytest.mark.parametrize("context", Context)
@pytest.mark.parametrize("on", [EVEN, f"a or {EVEN}", f"L:(a) or b or ({EVEN} or a)"])
def test_clock_events_are_chosen_among_as_rows_are(on: str, context: Context) -> None:
    rulebook = over_signals(on, context, ())
    seen = [("a", 0, 1), ("a", 2, 1), ("b", 2, 1), ("a", 2, 0), ("b", 2, 1), ("c", 70, 0)]
    history = [(name, second * SECOND, {"v": v}) for name, second, v in seen]
    answer = expected(rulebook, history)
    assert run(rulebook, history) == answer
    assert run(rulebook, history, [0, 2 * SECOND]) == answer


@pytest.mark.parametrize(
    ("on", "steps_max", "detected"),
    [("any(3, a*) - (b ; c)", 2_500, 58), ("(a and a) - (b ; c)", 200, 60)],
)
def test_only_what_ends_now_is_searched_for(on: str, steps_max: int, detected: int) -> None:
    rulebook = over_signals(on, Context.CONTINUOUS, ())
    rulebook = replace(rulebook, settings=replace(rulebook.settings, search_steps_max=steps_max))
    lines = [("a", second * SECOND, {"v": 0}) for second in range(60)]
    assert len(run(rulebook, lines)) == detected
