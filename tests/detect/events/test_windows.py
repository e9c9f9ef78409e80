"""Tumbling windows and sessions: the detector finds what the reference finds, however the history
is cut, with keys, several event types, rules as events, and rows that come late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.contexts import detections
from tests.reference.examples import example_count
from tests.reference.hits import detecting, drawn_for, noted, noting, resuming
from tests.reference.meaning import World
from tests.reference.strategies import expected
from tests.reference.values import Instance, Occurrence
from tests.reference.windows import detected, tumbling
from tests.reference.windows.histories import CASES_AN_EXAMPLE, side_by_side
from tests.support.history import run
from tests.support.rulebooks import loaded
from tests.support.windows import SECOND, Windows, books, check, histories, lengths
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions import windows as w
from tidegate.rules.model import Context, in_context

EXAMPLES = 120


def tumbles(draw: st.DrawFn, of: Callable[[], str]) -> str:
    return f"{{window: {draw(lengths())}, of: {of()}}}"


def sessions(draw: st.DrawFn, of: Callable[[], str]) -> str:
    return f"{{session: {draw(lengths(1, 3))}, of: {of()}}}"


KINDS = pytest.mark.parametrize("kind", [tumbles, sessions], ids=["tumbling", "session"])


@KINDS
@noting(windows_straddle_a_cut=3, windows_have_a_pause_between_them=8)
@resuming
@detecting
def test_windows_are_those_of_the_reference(kind: Windows) -> None:
    @drawn_for(kind.__name__)
    @given(data=st.data())
    @example_count(EXAMPLES, least=15)
    def some(data: st.DataObject) -> None:
        one(kind, data)

    some()


@pytest.mark.long
@pytest.mark.timeout(0)
@KINDS
@noting(windows_straddle_a_cut=3, windows_have_a_pause_between_them=8)
@resuming
@detecting
@given(data=st.data())
@example_count(20_000 // CASES_AN_EXAMPLE)
def test_in_twenty_thousand_cases(kind: Windows, data: st.DataObject) -> None:
    one(kind, data)


def one(kind: Windows, data: st.DataObject) -> None:
    book = data.draw(books(kind))
    check(book, data.draw(side_by_side(book, histories())), data)


@KINDS
def test_a_context_changes_nothing(kind: Windows) -> None:
    """`simulate --context` gives one to every rule."""
    text = "{window: 2 s, of: a}" if kind is tumbles else "{session: 2 s, of: a}"
    book = loaded("abc", r=f"on: {text}")
    history = [("a", at * SECOND, {"k": 1, "v": 1}) for at in (1, 2, 3, 7)]
    answer = expected(book, history)
    for context in Context:
        rules = {"r": in_context(book.rules["r"], context)}
        assert run(replace(book, rules=rules), history) == answer


# -- the definitions by other operators --------------------------------------------------------


@st.composite
def worlds(draw: st.DrawFn) -> World:
    instants = st.lists(st.integers(-3, 12), max_size=4)
    seen = {name: [Occurrence(name, name, t, t) for t in draw(instants)] for name in "ab"}
    return World(seen, 12)


PARTS = st.sampled_from([x.Name("a"), x.Or((x.Name("a"), x.Name("b")))])
LENGTHS = st.integers(1, 5).map(lambda micros: x.Duration(0, micros))


def told(found: list[Instance]) -> list[tuple[int, int, set[int]]]:
    """Each by its start, its end and its rows; ticks of a clock are none."""
    rows = [{o.number for _, o in i.parameters if o.type != "t"} for i in found]
    spans = sorted(((i.start, i.end) for i in found), key=lambda span: span[1])
    order = sorted(range(len(found)), key=lambda n: found[n].end)
    return [(*span, rows[n]) for span, n in zip(spans, order, strict=True)]


@given(world=worlds(), part=PARTS, length=LENGTHS)
@example_count(200)
def test_a_tumbling_window_is_its_rows_then_a_tick_in_cumulative(
    world: World, part: x.Expression, length: x.Duration
) -> None:
    ticks = tumbling.grid(length, -3, 12, "UTC")
    seen = {**world.occurrences, "t": [Occurrence("t", "t", tick, tick) for tick in ticks]}
    window = x.Seq(x.Instant(part), x.Name("t"))
    found = detections(window, World(seen, 99), Context.CUMULATIVE)
    assert told(found) == told(detected(w.Tumbling(part, length), world, None))


@given(world=worlds(), part=PARTS, gap=LENGTHS)
@example_count(200)
def test_a_session_is_what_nothing_follows_with_what_went_before_in_cumulative(
    world: World, part: x.Expression, gap: x.Duration
) -> None:
    row = x.Instant(part)
    quiet = x.Not(row, row, x.Own(gap))
    found = detections(x.Or((x.Seq(row, quiet), quiet)), world, Context.CUMULATIVE)
    assert told(found) == told(detected(w.Session(part, gap), world, None))


@noting(several_fire=8, one_is_passed_over=8)
@given(world=worlds(), length=LENGTHS)
@example_count(200)
def test_what_holds_is_the_first_of_what_nothing_ends(world: World, length: x.Duration) -> None:
    a, b = x.Name("a"), x.Name("b")
    lasting = detections(x.Not(b, a, x.Own(length)), world, Context.UNRESTRICTED)
    ends = [o.end for o in world.occurrences["b"]]
    spans = sorted({(i.start, i.end) for i in lasting}, key=lambda span: span[1])
    first, since = [], None
    for start, end in spans:
        if since is None or any(since < u <= end for u in ends):
            first.append((start, end))
            since = end
    noted("several fire", len(first) > 1)
    noted("one is passed over", len(first) < len(spans))
    found = detected(w.Holding(a, b, length, x.Duration(0, 0)), world, None)
    assert sorted((i.start, i.end) for i in found) == first
