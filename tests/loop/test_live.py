"""What `run` detects is what `simulate` detects on the same history."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.reference.cuts import cuts
from tests.reference.evaluate import Line
from tests.reference.examples import example_count
from tests.reference.hits import detecting, drawn_for, resuming, saw
from tests.reference.planted import cases
from tests.reference.strategies import EVERYTHING, SECOND
from tests.replay.traces import simulated
from tests.support.history import buckets
from tests.support.live import Live
from tests.support.make import BEGIN
from tidegate import rules
from tidegate.engine.core.instants import MILLISECOND, floor_watermark
from tidegate.engine.core.text.times import micros_text
from tidegate.engine.detect.events.state import partitions
from tidegate.engine.detect.events.state.partitions import count_of
from tidegate.engine.store import SqlStore
from tidegate.rules.expressions.nodes import Clock
from tidegate.rules.model import Context, Rulebook, Settings

NUMBERS = itertools.count()
SHORTLY = (Context.RESTRICTED, Context.CUMULATIVE)  # how rows are chosen is the detector's


def without_key(found: dict[str, Any]) -> dict[str, Any]:
    """The parameters of constituents without nulls and without what firings show in each of them:
    the key, and from when to when the labelled parts are."""
    shown = {*found["key"], *(f"{label}_{side}" for label in "LM" for side in ("start", "end"))}
    constituents = [
        {k: v for k, v in each.items() if v is not None and k not in shown}
        for each in found["constituents"]
    ]
    return {**found, "constituents": constituents}


def as_fired(detection: dict[str, Any]) -> dict[str, Any]:
    """A line of `simulate` with times as `firings --json` has them."""
    constituents = [{**c, "time": moment(c["time"])} for c in detection["constituents"]]
    start, end = (moment(detection[side]) for side in ("start", "end"))
    return {**detection, "start": start, "end": end, "constituents": constituents}


def moment(seconds: float) -> str:
    return f"{micros_text(round(seconds * SECOND))}Z"


@pytest.mark.parametrize(
    "context", [pytest.param(c, marks=[] if c in SHORTLY else pytest.mark.long) for c in Context]
)
@resuming
@detecting
def test_g02_run_detects_what_simulate_does(
    context: Context, store: SqlStore, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with its state in several partitions (G26), as if it were large."""
    spread = list[bool]()

    @drawn_for(context)
    @given(data=st.data())
    @example_count(20, least=10)
    def some(data: st.DataObject) -> None:
        book, history = data.draw(
            cases(operators=EVERYTHING, contexts=[context], depth=2, rules_max=2)
        )
        assume(history)
        limit = data.draw(st.sampled_from([1, 2, 100_000]))
        most = data.draw(st.sampled_from([2, 7, 64, 1]))
        settings = Settings(timers_per_bucket_max=limit, state_partitions=most)
        book = replace(book, settings=settings)
        rows = data.draw(st.sampled_from([-1, 0, -1, 2]))  # -1: cut before anything is carried
        monkeypatch.setattr(partitions, "ROWS_MAX", rows)
        # A watermark of `run` is at, or next before, what happens at such microseconds. Clocks
        # stand on whole seconds, and `simulate` begins with the first line.
        clocks = any(isinstance(n, Clock) for r in book.rules.values() for n in r.pattern.on.walk())
        beside = 0 if clocks else data.draw(st.sampled_from([998, 999, 0]))
        history = [(event, time + beside, fields) for event, time, fields in history]
        spread.extend(compare(book, history, data, store, tmp_path))

    some()
    print(f"{sum(spread)} of {len(spread)} buckets leave several partitions")
    assert sum(spread) * 6 >= len(spread)


def compare(
    book: Rulebook, history: list[Line], data: st.DataObject, store: SqlStore, folder: Any
) -> list[bool]:
    """One history, cut anywhere, with restarts and long pauses in between. Returns of each cut at
    which something is carried whether it is in several partitions."""
    spread = list[bool]()
    first, last = (pick(time for _, time, _ in history) for pick in (min, max))
    live = Live(store, book, f"g{next(NUMBERS)}", first)
    end = last + data.draw(st.sampled_from([0, 1, 5, 100])) * SECOND + MILLISECOND
    ends = data.draw(cuts(book, history, least=3))
    for now, piece in buckets(history, {end, *(now for now in ends if first <= now < end)}):
        live.signal(piece)
        live.drain(now)
        if carried := live.loop.state.carried.tables:
            spread.append(count_of(carried.values()) > 1)
        if data.draw(st.booleans()):
            live.restart()
    expected = saw(simulated(book, history, folder, until=floor_watermark(end)))
    assert [*map(without_key, live.found())] == [without_key(as_fired(d)) for d in expected]
    return spread


def test_a_key_of_whole_numbers_and_doubles_is_shown_as_the_nearest_double(
    store: SqlStore,
) -> None:
    """2**60 + 1 and 0.1 are of no type but a decimal of 75 digits."""
    book = rules.load("""
rulebook: b
events: {a: {signal: {k: bigint}}, b: {signal: {k: double}}}
rules: {r: {on: (a or b) ; b, per: k}}
""")
    live = Live(store, book, "b", BEGIN)
    sent: list[tuple[str, float]] = [("a", 2**60 + 1), ("b", 0.1), ("b", 2.0**60), ("b", 0.1)]
    live.signal((event, BEGIN + n * SECOND, {"k": k}) for n, (event, k) in enumerate(sent))
    live.drain(BEGIN + 9 * SECOND)
    assert [one["key"] for one in live.found()] == [{"k": 0.1}]
