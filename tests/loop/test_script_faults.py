"""Faults of scripts, and scripts that are edited, switched off, parked, or behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.live import Live, RowsFeed
from tests.support.make import BEGIN, SECOND
from tidegate import rules
from tidegate.engine.control.status import next_timers
from tidegate.engine.core.text.times import micros_text
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import EngineError, InputError
from tidegate.rules.model import Rulebook

BOOK = """
rulebook: loop
events:
  a: {signal: {v: bigint}}
SETTINGS
scripts:
  main:
    text: |
      in long a out long got
      BODY
    KEYS
  other:
    text: "in long a out long seen (a(x) {n = n + 1; !> seen(n);})*"
rules:
  gots: {on: got}
  seens: {on: seen}
"""


def book(body: str, keys: str = "", settings: str = "") -> Rulebook:
    text = BOOK.replace("BODY", body).replace("KEYS", keys).replace("SETTINGS", settings)
    return rules.load(text)


def happens(live: Live, *values: int) -> None:
    """A signal each, a second after another, each in a bucket of its own."""
    for value in values:
        live.at += SECOND
        live.signal([("a", live.at, {"v": value})])
        live.drain(live.at + 1_000)


def emitted(live: Live, rule: str = "gots") -> list[Any]:
    return [each["constituents"][0]["value"] for each in live.found() if each["rule"] == rule]


COUNTING = "(a(x) {n = n + 1; !> got(n);})*"
DIVIDING = "(a(x) {!> got(6 / x);})*"


def test_faults_are_rows_of_rejected_so_many_a_bucket(store: SqlStore) -> None:
    own = book(DIVIDING, settings="settings: {script_errors_kept_max: 2}")
    live = Live(store, own, "log", BEGIN)
    live.signal([("a", BEGIN + n, {"v": 0}) for n in range(5)])
    live.at = BEGIN + SECOND
    report = live.loop.bucket()
    assert report is not None
    assert report.rejected == 3
    happens(live, 3)
    rows = store.of("log").rejections.newest(10, whole=True)
    assert [(row["event"], row["source"]) for row in rows] == [("a", "script main")] * 2 + [
        ("main", "script main")
    ]
    assert rows[0]["reason"].startswith("arithmetic at a, ")
    assert rows[2]["reason"] == "3 more faults (setting script_errors_kept_max)"
    assert "zero" in rows[0]["details"]
    assert store.of("log").status.shown()["rejected_rows"] == 3
    assert emitted(live) == [0, 0, 0, 0, 0, 2]
    assert emitted(live, "seens") == [1, 2, 3, 4, 5, 6]


def test_faults_are_ignored_or_stop_the_engine_where_the_rulebook_says_so(store: SqlStore) -> None:
    live = Live(store, book(DIVIDING, "on_error: ignore"), "ignore", BEGIN)
    happens(live, 0, 1)
    assert store.of("ignore").rejections.newest(10, whole=True) == []
    live = Live(store, book(DIVIDING, "on_error: stop"), "stop", BEGIN)
    happens(live, 2)
    before = live.loop.state
    with pytest.raises(EngineError) as stopped:
        happens(live, 0)
    assert stopped.value.code == "script-fault"
    assert stopped.value.message.startswith("script main: arithmetic at a, ")
    assert (live.loop.state, emitted(live)) == (before, [3])


def test_g13_a_script_that_runs_away_is_parked_alone_and_goes_on_once_enabled(
    store: SqlStore,
) -> None:
    body = "(a(x) {n = n + 1; for (i: 1, x) m = i; !> got(n);})*"
    live = Live(store, book(body, settings="settings: {script_steps_max: 50}"), "park", BEGIN)
    happens(live, 1, 2)
    live.signal([("a", live.at + n, {"v": v}) for n, v in enumerate([3, 100, 4, 5])])
    live.drain(live.at + SECOND)
    happens(live, 6)
    assert (emitted(live), emitted(live, "seens")) == ([1, 2, 3], [1, 2, 3, 4, 5, 6, 7])
    (parked,) = store.of("park").status.shown()["parked_rules"]
    assert (parked["rule"], parked["passed_over"]) == ("main", 3)
    assert "script_steps_max" in parked["reason"]
    live.restart()
    happens(live, 7)
    assert emitted(live) == [1, 2, 3]
    store.of("park").controls.ask("enable", "main")
    live.drain(live.at + 1_000)
    happens(live, 8)
    assert emitted(live) == [1, 2, 3, 4]
    assert store.of("park").status.shown()["parked_rules"] == []


def test_g09_an_edit_beyond_layout_starts_a_script_anew_and_no_other(store: SqlStore) -> None:
    live = Live(store, book(COUNTING), "edit", BEGIN)
    happens(live, 1, 1)
    for body in (COUNTING + " // a comment", COUNTING.replace("n +", "n  +")):
        live.edit(book(body))
        happens(live, 1)
    assert emitted(live) == [1, 2, 3, 4]
    live.edit(book(COUNTING.replace("+ 1", "+ 10")))
    happens(live, 1, 1)
    assert emitted(live) == [1, 2, 3, 4, 10, 20]
    assert emitted(live, "seens") == [1, 2, 3, 4, 5, 6]
    carried = live.store.of("edit").buckets.load().carried.tables
    assert len([name for name in carried if name.startswith("script:")]) == 2


def test_g24_a_script_that_was_disabled_begins_anew(store: SqlStore) -> None:
    live = Live(store, book(COUNTING), "switch", BEGIN)
    happens(live, 1, 1)
    store.of("switch").controls.ask("disable", "main")
    live.drain(live.at + 1_000)
    happens(live, 1)
    store.of("switch").controls.ask("enable", "main")
    live.drain(live.at + 1_000)
    happens(live, 1)
    assert (emitted(live), emitted(live, "seens")) == ([1, 2, 1], [1, 2, 3, 4])


def test_timers_of_a_parked_script_wait_and_what_they_emit_stands_behind_the_last_bucket(
    store: SqlStore,
) -> None:
    body = "(a(x) {for (i: 1, x) m = i;} elapse[5 seconds]() {!> got(m);} )*"
    own = book(body, settings="settings: {script_steps_max: 50, timers_per_bucket_max: 1}")
    live = Live(store, own, "late", BEGIN)
    happens(live, 1, 100)  # the second is not expected: the timer is still to come
    assert emitted(live) == []
    body = body.replace("elapse", "(a(y) {while (y > 50) y = y;})* elapse")
    live = Live(store, replace(book(body), settings=own.settings), "later", BEGIN)
    happens(live, 1, 100)
    assert live.loop.state.parked == {"main"}
    assert live.drain(live.at + 20 * SECOND) == 0
    happens(live, 1)  # for the other script
    watermark = live.loop.state.watermark
    store.of("later").controls.ask("enable", "main")
    live.drain(live.at + SECOND)
    (firing,) = [each for each in live.found() if each["rule"] == "gots"]
    assert firing["end"] == f"{micros_text((watermark or 0) + 1)}Z"
    assert emitted(live) == [1]
    happens(live, 2, 3)
    assert [t["rules"] for t in next_timers(store, live.book, live.at)] == [["main"]]
    live.drain(live.at + 20 * SECOND)
    assert emitted(live) == [1, 2]


def test_g26_a_bucket_that_a_script_does_not_see_writes_nothing_of_it(store: SqlStore) -> None:
    own = book(COUNTING)
    own = replace(own, events={**own.events, "b": replace(own.events["a"], name="b")})
    own = replace(own, rules={**own.rules})
    live = Live(store, own, "kept", BEGIN)
    happens(live, 1)
    live.signal([("b", live.at, {"v": 1})])
    live.drain(live.at + SECOND)
    assert live.loop.state.carried.changed == frozenset()


LATE = """
rulebook: loop
tables: {a: {path: /a, start: earliest}}
events:
  a: {on: insert, table: a, time: at, lateness: 10 s}
  now: {on: insert, table: a}
scripts:
  ups:
    text: |
      in long a out {long from; long to;} up
      a(x) (a(y) {y > x ? !> up({from: x, to: y}); x = y;})*
    in: {a: {event: a, value: v}}
  twice:
    text: |
      in {long from; long to;} up out long big
      (up(u) {u.to > 5 ? !> big(u.to);})*
rules:
  bigs: {on: big}
  met: {on: "up and now", context: recent}
"""


def test_g05_a_script_over_event_time_runs_behind_and_so_does_what_uses_it(
    store: SqlStore,
) -> None:
    feed = RowsFeed()
    live = Live(store, rules.load(LATE), "behind", BEGIN, feed)
    rows = [(1, 3), (5, 9), (3, 1), (2, 2), (9, 20)]  # (value, second); later ones come first
    committed = feed.written.setdefault("a", [])
    for n, (value, second) in enumerate(rows):
        at = BEGIN + (9 + n) * SECOND
        committed.append((at, [(value, BEGIN + second * SECOND)]))
        live.drain(at + 1_000)
        if n == 2:
            live.restart()
    assert emitted(live, "bigs") == []
    live.drain(BEGIN + 60 * SECOND)
    found = [each["constituents"][0] for each in live.found() if each["rule"] == "bigs"]
    assert [(each["value"], each["time"][-4:]) for each in found] == [(9, ":20Z")]


def test_what_a_script_takes_is_there_and_of_its_type(store: SqlStore) -> None:
    whole = LATE.replace("in: {a: {event: a, value: v}}", "")
    for text, said in (
        (LATE.replace("value: v", "value: w"), "'a' has no column 'w'"),
        (
            LATE.replace("value: v", "value: at"),
            "the input 'a' takes long, and at of 'a' is timestamp",
        ),
        (whole, "which column of 'a' the input 'a' takes is not said"),
    ):
        with pytest.raises(InputError) as refused:
            Live(store, rules.load(text), "bad", BEGIN, RowsFeed())
        assert [problem.message for problem in refused.value.problems] == [said]


def test_clocks_are_events_of_scripts_each_of_its_own_id(store: SqlStore) -> None:
    text = """
rulebook: loop
events: {tick: {cron: "*/5 * * * *"}}
scripts:
  main: {text: "in {} tick out long got (tick() {n = n + 1; !> got(n);})*"}
rules: {gots: {on: got}}
"""
    live = Live(store, rules.load(text), "clock", BEGIN)
    live.drain(BEGIN + 1_000 * SECOND)
    assert len({each["firing_id"] for each in store.of("clock").firings.listed()}) == 4
    assert emitted(live) == [1, 2, 3, 4]


def test_objects_of_several_types_are_text_for_rules_and_exact_for_scripts(
    store: SqlStore,
) -> None:
    text = """
rulebook: loop
events:
  a: {signal: {v: bigint}}
  b: {signal: {w: string}}
scripts:
  main:
    text: |
      in object a, object b out object got, {object x; long n;} both
      ((a(x) | b(x)) {!> got(x); !> both({x: x, n: 1});})*
  next: {text: "in object got out object last (got(x) {!> last(x);})*"}
rules:
  gots: {on: got}
  lasts: {on: last}
  pairs: {on: "A*(got, both, got)", context: recent}
"""
    live = Live(store, rules.load(text), "object", BEGIN)
    happens(live, 1)
    for event, fields in (("b", {"w": "x"}), ("a", {"v": 3}), ("b", {"w": "y"})):
        live.signal([(event, live.at + 2_000, fields)])
        live.at += SECOND
    live.drain(live.at + SECOND)
    assert emitted(live) == ["1", "x", "3", "y"]
    assert emitted(live, "lasts") == ["1", "x", "3", "y"]
