"""Clocks of a rulebook in the loop: what was missed, floods, wall clocks that jump."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.golden.load import micros
from tests.reference.strategies import SECOND
from tests.support.bench import BOOK as BENCH
from tests.support.bench import Bench
from tests.support.live import Live
from tests.support.make import BEGIN
from tidegate import rules
from tidegate.engine.capture.commit_instants import Now
from tidegate.engine.cli.screens import status_lines
from tidegate.engine.control.status import status_of
from tidegate.engine.store import SqlStore
from tidegate.rules.model import Rulebook

HOUR = 3_600 * SECOND
NINE = micros("2026-03-02T09:00")
BOOK = """\
rulebook: clocks
events:
  hourly: {cron: "0 * * * *", misfire: POLICY}
  asked: {signal: {}}
rules:
  report: {on: hourly}
  unanswered: {on: "not(asked)[asked, [30 min]]"}
"""


def book(policy: str = "fire_all", **settings: Any) -> Rulebook:
    found = rules.load(BOOK.replace("POLICY", policy))
    return replace(found, settings=replace(found.settings, **settings))


def ends(live: Live, rule: str = "report") -> list[str]:
    return [firing["end"][11:16] for firing in live.found() if firing["rule"] == rule]


@pytest.mark.parametrize(
    ("policy", "fired"),
    [
        ("fire_all", ["10:00", "11:00", "12:00", "13:00"]),
        ("fire_last", ["10:00", "13:00"]),
        ("skip", ["10:00"]),
    ],
)
@pytest.mark.parametrize("limit", [1, 100])
def test_g03_what_a_clock_missed_is_fired_as_its_policy_says(
    store: SqlStore, policy: str, fired: list[str], limit: int
) -> None:
    live = Live(store, book(policy, timers_per_bucket_max=limit), "m", NINE + SECOND)
    live.drain(NINE + HOUR + 59 * SECOND)
    live.restart()
    live.drain(NINE + 4 * HOUR + 61 * SECOND)
    assert ends(live) == fired
    live.drain(NINE + 5 * HOUR + 60 * SECOND)  # late by the grace: not missed
    assert ends(live) == [*fired, "14:00"]


def test_g03_what_is_passed_over_stands_in_the_plan_and_is_told_once(
    store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    live = Live(store, book("skip", timers_per_bucket_max=1), "m", NINE + SECOND)
    live.signal(("asked", NINE + 2 * HOUR + n * SECOND, {}) for n in (1, 2))
    live.drain(NINE + 3 * HOUR + SECOND)
    assert ends(live) == ["12:00"]
    assert ends(live, "unanswered") == ["11:30"]
    told = [record.getMessage() for record in caplog.records if "passed over" in record.msg]
    until = "2026-03-02T11:30:01.000998Z"  # as far as the bucket goes
    assert told == [f"clock hourly: 2 occurrences missed up to {until}, passed over (misfire)"]


@pytest.mark.parametrize(("policy", "count"), [("fire_all", 0), ("fire_last", 4), ("skip", 6)])
@pytest.mark.parametrize("limit", [1, 100])
def test_g03_what_is_passed_over_is_counted_by_clock(
    store: SqlStore, policy: str, count: int, limit: int
) -> None:
    live = Live(store, book(policy, timers_per_bucket_max=limit), "m", NINE + SECOND)
    for hours in (4, 8):  # each time, the last three were missed
        live.drain(NINE + (hours - 3) * HOUR + 30 * SECOND)
        live.restart()
        live.drain(NINE + hours * HOUR + 61 * SECOND)
    status = status_of(store, live.book)
    assert status["misfires"] == {"hourly": count}
    lines = status_lines({**status, "next_timers": [], "held_back": []}, 100)
    said = f"clock hourly: {count} occurrences missed and passed over (misfire)"
    assert (said in lines) == bool(count)


def test_g09_nothing_was_missed_before_the_first_start(
    store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    """A bucket for each of three commits, the last of them twenty minutes before the start."""
    minutely = "minutely: {cron: '* * * * *', misfire: skip}"
    text = BENCH.replace("events: {", f"events: {{{minutely}, ").replace("{on: row", "{on: ON", 1)
    text = text.replace("ON", "minutely").replace("SELECT id", "SELECT 1 AS id")
    bench = Bench(store, 3, text + "settings: {bucket_rows_max: 1}\n")
    bench.feed.instants = {n: BEGIN + n * 20 * 60 * SECOND for n in range(3)}
    bench.drain()
    assert store.of("loop").buckets.load().bucket >= 3
    assert status_of(store, bench.book)["misfires"] == {"minutely": 0}
    bench.restart()
    bench.clock.later(3 * 60 + 30)  # the first of three is earlier than the grace
    bench.drain()
    assert status_of(store, bench.book)["misfires"] == {"minutely": 2}
    assert len([r for r in caplog.records if "passed over" in r.msg]) == 1


@pytest.mark.parametrize("policy", ["fire_all", pytest.param("skip", marks=pytest.mark.long)])
def test_g08_half_a_year_of_a_clock_that_ticks_each_second_is_taken_in_small_buckets(
    store: SqlStore, policy: str
) -> None:
    text = BOOK.replace("POLICY", policy).replace('cron: "0 * * * *"', 'at: "<(*:*:*)*/*/2026>"')
    found = rules.load(text)
    found = replace(found, settings=replace(found.settings, timers_per_bucket_max=3))
    live = Live(store, found, "year", NINE + SECOND // 2)
    live.at = NINE + 200 * 24 * HOUR
    reports = [live.loop.bucket() for _ in range(5)]
    assert [report.firings for report in reports if report is not None] == [3] * 5
    assert ends(live)[0] == ("09:00" if policy == "fire_all" else "08:59")


def test_g08_a_limit_that_a_span_just_reaches_cuts_what_is_behind_it(store: SqlStore) -> None:
    daily = BOOK.replace("POLICY", "fire_all").replace("0 * * * *", "0 12 * * *")
    found = rules.load(daily)
    found = replace(found, settings=replace(found.settings, timers_per_bucket_max=2))
    live = Live(store, found, "daily", NINE)
    live.at = NINE + 6 * 24 * HOUR
    reports = [live.loop.bucket() for _ in range(4)]
    assert [report and report.firings for report in reports] == [2, 2, 2, None]


def test_g02_what_is_due_is_waited_for_and_what_comes_later_is_not(store: SqlStore) -> None:
    live = Live(store, book(), "w", NINE + SECOND)
    live.at = NINE + HOUR  # the watermark is a little before it
    seen = live.loop.visible()
    assert live.drain(live.at) == 0
    assert (live.loop.planner.idle, live.loop.done(seen)) == (False, False)
    assert live.loop.wait_seconds == 0.001
    assert live.drain(NINE + HOUR + 1_000) == 1
    assert (live.loop.planner.idle, live.loop.done(seen)) == (True, True)
    assert live.loop.wait_seconds is not None
    assert 3_599 < live.loop.wait_seconds < 3_601


class Jumping:
    """A wall clock that can be set, and a monotonic one that goes on, but for a machine that
    sleeps."""

    def __init__(self, wall: int) -> None:
        self.wall_at, self.monotonic_at = wall, 0

    def wall(self) -> int:
        return self.wall_at

    def monotonic(self) -> int:
        return self.monotonic_at

    def passes(self, micros: int) -> None:
        self.wall_at += micros
        self.monotonic_at += micros


@pytest.mark.parametrize("jump", [-HOUR, 0, HOUR])
def test_g03_a_wall_clock_that_jumps_loses_and_doubles_no_timer(store: SqlStore, jump: int) -> None:
    """An hour back: the clock of the engine goes on. An hour forward, or a machine that slept: what
    was due meanwhile fires at its own time."""
    live = Live(store, book(), "j", NINE + SECOND)
    clock = Jumping(NINE + SECOND)
    now = Now(clock, NINE + SECOND)

    def drain() -> None:
        live.drain(now())

    live.signal([("asked", NINE + 10 * SECOND, {})])
    clock.passes(20 * 60 * SECOND)
    drain()
    clock.wall_at += jump
    drain()
    live.restart()
    now = Now(clock, live.loop.state.now)
    for _ in range(10):
        clock.passes(20 * 60 * SECOND)
        drain()
    assert ends(live) == ["10:00", "11:00", "12:00", "13:00"][: 4 if jump > 0 else 3]
    assert ends(live, "unanswered") == ["09:30"]
