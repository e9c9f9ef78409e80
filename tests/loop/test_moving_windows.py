"""Windows that slide, and those that are asked, run by the loop: their timers, over a restart, by
event time; and what is said of their firings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.golden.load import micros
from tests.reference.strategies import SECOND
from tests.support.live import Live, RowsFeed
from tidegate import rules
from tidegate.engine.control.status import whole_status
from tidegate.engine.replay.why.ask import why
from tidegate.engine.replay.why.model import as_json
from tidegate.engine.store import SqlStore

NINE = micros("2026-03-02T09:00")
MINUTE = 60 * SECOND
BOOK = """\
rulebook: kiln
events:
  reading: {signal: {k: bigint, celsius: double}}
rules:
  hot:
    on: {over: {window: 1 min, of: reading, fire: avg(celsius) > 80, rearm: avg(celsius) < 70}}
    per: k
  hourly: {on: {window: 20 min, every: 10 min, of: reading}, per: k}
"""


def reading(at: float, celsius: float | None, k: int = 1) -> tuple[str, int, dict[str, Any]]:
    return "reading", NINE + round(at * SECOND), {"k": k, "celsius": celsius}


@pytest.mark.parametrize("restarted", [False, True])
def test_a_row_that_leaves_makes_a_window_fire(store: SqlStore, restarted: bool) -> None:
    """Nothing arrives then; the engine may have been restarted in between."""
    live = Live(store, rules.load(BOOK), "kiln", NINE)
    live.signal([reading(10, 60), reading(20, 90), reading(40, 92), reading(15, 99, k=2)])
    live.drain(NINE + 50 * SECOND)
    assert live.ends("hot") == [("09:00:15", 1), ("09:00:40", 3)]
    live.signal([reading(55, 20)])
    live.drain(NINE + 60 * SECOND)
    if restarted:
        live.restart()
    live.drain(NINE + 79 * SECOND)
    live.signal([reading(130, 85)])
    live.drain(NINE + 200 * SECOND)
    # (60, 90, 92, 20) re-arms; at 70 s the 60 leaves, at 80 s the 90; alone 85 is above 80
    assert live.ends("hot") == [("09:00:15", 1), ("09:00:40", 3), ("09:02:10", 1)]


def test_without_a_row_it_fires_at_the_instant_at_which_one_leaves(store: SqlStore) -> None:
    live = Live(store, rules.load(BOOK), "kiln", NINE)
    live.signal([reading(10, 60), reading(20, 90)])
    live.drain(NINE + 65 * SECOND)
    assert live.ends("hot") == []
    live.drain(NINE + 75 * SECOND)
    assert live.ends("hot") == [("09:01:10", 1)]
    (fired,) = [f for f in store.of("kiln").firings.listed() if f["rule"] == "hot"]
    story = as_json(why(store, None, fired["firing_id"]))
    assert [row["row"]["celsius"] for row in story["constituents"]] == [90]
    assert story["end"].startswith("2026-03-02T09:01:10")


def test_status_shows_when_rows_leave_and_when_windows_end(store: SqlStore) -> None:
    live = Live(store, rules.load(BOOK), "kiln", NINE)
    live.signal([reading(10, 60), reading(20, 50, k=2)])
    live.drain(NINE + 30 * SECOND)
    timers = whole_status(store, live.book)["next_timers"]
    assert [(t["at"][11:19], t["rules"], t["key"]) for t in timers] == [
        ("09:01:10", ["hot"], {"k": 1}),
        ("09:01:20", ["hot"], {"k": 2}),
        ("09:10:00", ["hourly"], {"k": 1}),
        ("09:10:00", ["hourly"], {"k": 2}),
    ]


@pytest.mark.parametrize("limit", [1, 100_000])
def test_windows_end_one_after_the_other_however_many_are_due(store: SqlStore, limit: int) -> None:
    book = rules.load(BOOK)
    book = replace(book, settings=replace(book.settings, timers_per_bucket_max=limit))
    live = Live(store, book, "kiln", NINE)
    live.signal([reading(10, 60), reading(11 * 60, 50), reading(11 * 60, 50, k=2)])
    live.drain(NINE + 12 * MINUTE)
    live.restart()
    live.drain(NINE + 60 * MINUTE)
    assert live.ends("hourly") == [
        ("09:10:00", 1),
        ("09:20:00", 2),
        ("09:20:00", 1),
        ("09:30:00", 1),
        ("09:30:00", 1),
    ]


def test_g08_after_downtime_windows_with_many_rows_end_in_several_buckets(store: SqlStore) -> None:
    """Nobody is parked; a rule that is, as the windows of one instant are too large, comes back
    with a higher limit, and what is overdue fires."""
    book = rules.load(BOOK, settings={"window_rows_max": "4"})
    live = Live(store, book, "kiln", NINE)
    live.signal([reading(60 * minute, 60) for minute in range(1, 8, 3)])
    live.drain(NINE + 9 * MINUTE)
    live.restart()
    live.drain(NINE + 60 * MINUTE)
    assert live.ends("hourly") == [("09:10:00", 3), ("09:20:00", 3)]
    live.signal([reading(3_660 + n, 60) for n in range(5)])
    live.drain(NINE + 65 * MINUTE)
    live.drain(NINE + 75 * MINUTE)
    assert live.loop.state.parked == {"hourly"}
    live.book = replace(live.book, settings=replace(live.book.settings, window_rows_max=5))
    live.restart()
    store.of("kiln").controls.ask("enable", "hourly")
    live.drain(NINE + 120 * MINUTE)
    assert live.loop.state.parked == frozenset()
    assert live.ends("hourly")[2:] == [("10:10:00", 5), ("10:20:00", 5)]


OVER_TABLE = """\
rulebook: late
tables: {a: {path: /a}}
events:
  row: {on: insert, table: a, time: at, lateness: 10 s, columns: [v]}
rules:
  many: {on: {over: {window: 1 min, of: row, fire: sum(v) >= 6}}}
  slid: {on: {window: 20 s, every: 10 s, of: row}}
"""


def test_g05_late_rows_stand_in_the_windows_of_their_times(store: SqlStore) -> None:
    feed = RowsFeed()
    live = Live(store, rules.load(OVER_TABLE), "late", NINE, feed)
    feed.written["a"] = [
        (NINE + 12 * SECOND, [(3, NINE + 12 * SECOND)]),
        (NINE + 14 * SECOND, [(3, NINE + 5 * SECOND)]),  # nine seconds late
        (NINE + 31 * SECOND, [(1, NINE + 31 * SECOND)]),
    ]
    live.drain(NINE + 90 * SECOND)
    assert live.ends("many") == [("09:00:12", 2)]
    assert live.ends("slid") == [
        ("09:00:10", 1),
        ("09:00:20", 2),
        ("09:00:30", 1),
        ("09:00:40", 1),
        ("09:00:50", 1),
    ]
