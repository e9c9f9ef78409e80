"""Tumbling windows and sessions, run by the loop: their timers, over a restart, by event time; and
what is said of their firings."""

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
from tidegate.engine.replay.why.rule_words import sentence
from tidegate.engine.store import SqlStore

NINE = micros("2026-03-02T09:00")
BOOK = """\
rulebook: traffic
events:
  req: {signal: {k: bigint, v: bigint}}
  err: {signal: {k: bigint, v: bigint}}
rules:
  busy: {on: {window: 1 min, of: [req, err]}, per: k, if: count(*) > 1}
  visit: {on: {session: 30 s, of: req}, per: k}
"""


def row(at: float, k: int = 1, event: str = "req") -> tuple[str, int, dict[str, Any]]:
    return event, NINE + round(at * SECOND), {"k": k, "v": 0}


@pytest.mark.parametrize("restarted", [False, True])
def test_a_window_ends_though_nothing_arrives(store: SqlStore, restarted: bool) -> None:
    """The engine may have been restarted while it was open."""
    live = Live(store, rules.load(BOOK), "traffic", NINE)
    live.signal([row(10), row(40, event="err"), row(40, k=2)])
    live.drain(NINE + 45 * SECOND)
    assert live.ends("visit") == [("09:00:40", 1)]
    if restarted:
        live.restart()
    live.drain(NINE + 59 * SECOND)
    assert live.ends("busy") == []
    live.signal([row(70)])
    live.drain(NINE + 200 * SECOND)
    assert live.ends("busy") == [
        ("09:01:00", 2),
        ("09:01:00", 1),
        ("09:02:00", 1),
    ]
    assert live.ends("visit")[1:] == [("09:01:10", 1), ("09:01:40", 1)]


def test_status_shows_when_open_windows_end(store: SqlStore) -> None:
    live = Live(store, rules.load(BOOK), "traffic", NINE)
    live.signal([row(10), row(20, k=2)])
    live.drain(NINE + 30 * SECOND)
    timers = whole_status(store, live.book)["next_timers"]
    assert [(t["at"][11:19], t["rules"], t["key"]) for t in timers] == [
        ("09:00:40", ["visit"], {"k": 1}),
        ("09:00:50", ["visit"], {"k": 2}),
        ("09:01:00", ["busy"], {"k": 1}),
        ("09:01:00", ["busy"], {"k": 2}),
    ]


def test_why_tells_of_a_window(store: SqlStore) -> None:
    live = Live(store, rules.load(BOOK), "traffic", NINE)
    live.signal([row(10), row(20, event="err")])
    live.drain(NINE + 90 * SECOND)
    (fired,) = [f for f in store.of("traffic").firings.listed() if f["rule"] == "busy"]
    story = as_json(why(store, None, fired["firing_id"]))
    assert sentence(rules.load(BOOK).rules["busy"]) == (
        "Rule busy fires on `{window: 1 min, of: [req, err]}`, per k, if `count(*) > 1`."
    )
    assert [one["event"] for one in story["constituents"]] == ["req", "err"]
    assert (story["start"][11:19], story["end"][11:19]) == ("09:00:10", "09:01:00")


@pytest.mark.parametrize("limit", [1, 100_000])
def test_windows_end_one_after_the_other_however_many_are_due(store: SqlStore, limit: int) -> None:
    book = rules.load(BOOK)
    book = replace(book, settings=replace(book.settings, timers_per_bucket_max=limit))
    live = Live(store, book, "traffic", NINE)
    live.signal([row(10), row(10, k=2), row(70), row(135)])
    live.drain(NINE + 300 * SECOND)
    assert [end for end, _ in live.ends("busy")] == [
        "09:01:00",
        "09:01:00",
        "09:02:00",
        "09:03:00",
    ]


OVER_TABLE = """\
rulebook: late
tables: {a: {path: /a}}
events:
  row: {on: insert, table: a, time: at, lateness: 10 s, columns: [v]}
rules:
  minute: {on: {window: 20 s, of: row}}
  visit: {on: {session: 8 s, of: row}}
"""


def test_g05_late_rows_stand_in_the_windows_of_their_times(store: SqlStore) -> None:
    feed = RowsFeed()
    live = Live(store, rules.load(OVER_TABLE), "late", NINE, feed)
    feed.written["a"] = [
        (NINE + 22 * SECOND, [(1, NINE + 21 * SECOND)]),
        (NINE + 24 * SECOND, [(2, NINE + 15 * SECOND)]),  # nine seconds late: the window goes on
    ]
    live.drain(NINE + 29 * SECOND)
    assert live.ends("minute") == []
    live.drain(NINE + 90 * SECOND)
    assert live.ends("minute") == [("09:00:20", 1), ("09:00:40", 1)]
    assert live.ends("visit") == [("09:00:29", 2)]
