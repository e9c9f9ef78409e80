"""What `run` detects is what `simulate` detects on the same history."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.evaluate import Line
from tests.reference.hits import detecting, saw
from tests.reference.planted import cases
from tests.reference.strategies import EVERYTHING, SECOND, cuts
from tests.replay.traces import simulated
from tests.support.live import Live
from tidegate.engine.moments import micros_text
from tidegate.engine.store import SqlStore
from tidegate.rules.model import Context, Rulebook, Settings

NUMBERS = itertools.count()


def without_key(found: dict[str, Any]) -> dict[str, Any]:
    """The parameters of constituents without nulls and without the key, which firings show in each
    of them."""
    constituents = [
        {k: v for k, v in each.items() if v is not None and k not in found["key"]}
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


@pytest.mark.parametrize("context", Context)
@detecting
def test_g02_run_detects_what_simulate_does(
    context: Context, store: SqlStore, tmp_path: Any
) -> None:
    @given(data=st.data())
    @settings(max_examples=20, deadline=None)
    def some(data: st.DataObject) -> None:
        book, history = data.draw(
            cases(operators=EVERYTHING, contexts=[context], depth=2, rules_max=2)
        )
        limit = data.draw(st.sampled_from([1, 2, 100_000]))
        book = replace(book, settings=Settings(timers_per_bucket_max=limit))
        compare(book, history, data, store, tmp_path)

    some()


def compare(
    book: Rulebook, history: list[Line], data: st.DataObject, store: SqlStore, folder: Any
) -> None:
    """One history, cut anywhere, with restarts and long pauses in between."""
    first, last = (pick(time for _, time, _ in history) for pick in (min, max))
    live = Live(store, book, f"g{next(NUMBERS)}", first)
    pieces = [piece for piece in data.draw(cuts(history)) if piece]
    for piece, following in itertools.zip_longest(pieces, pieces[1:]):
        live.signal(piece)
        end = max(time for _, time, _ in piece)
        if following and data.draw(st.booleans()):
            end = min(time for _, time, _ in following) - SECOND
        live.drain(end + 1_000)
        if data.draw(st.booleans()):
            live.restart()
    end = last + data.draw(st.sampled_from([0, 1, 5, 100])) * SECOND
    live.drain(end + 1_000)
    until = end + 998
    expected = saw(simulated(book, history, folder, until=until))
    assert [*map(without_key, live.found())] == [without_key(as_fired(d)) for d in expected]
