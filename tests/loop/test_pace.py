"""Buckets that take longer than what arrives meanwhile say that they lose ground, once, and once
more when that is over."""

from __future__ import annotations

import pytest

from tests.support.bench import BOOK, Bench
from tests.support.make import BEGIN, SECOND
from tidegate.connectors.http.metrics import Metrics
from tidegate.connectors.http.rulebooks import Source
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.core.values import Plan
from tidegate.engine.loop.pace import Pace
from tidegate.engine.store import SqlStore


class Slow(Bench):
    """A bucket takes the commits of two seconds, and as many seconds as `takes`: each action half
    of them. What it says goes to the store."""

    takes = 0.0

    def __init__(self, store: SqlStore) -> None:
        super().__init__(store, 1000, BOOK + "settings: {bucket_rows_max: 2}\n")
        self.sink.fails = self.wait
        self.clock.at = BEGIN + 100 * SECOND
        self.activity: Activity | None = None
        self.loop.ports.say = self.say

    def wait(self, _: Entry) -> None:
        self.clock.at += int(self.takes * SECOND / 2)

    def say(self, activity: Activity) -> None:
        self.activity = activity
        self.ledger.lease.say(activity)

    def losing(self, takes: float, buckets: int) -> list[bool]:
        """Whether ground is lost as each of some buckets begins, of which each takes so long."""
        self.takes = takes
        found = []
        for _ in range(buckets):
            assert self.loop.bucket() is not None
            found.append(self.store.of("loop").status.shown()["losing_ground_since"] is not None)
        return found


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [
        (record.levelname, record.getMessage().split(" as ")[0])
        for record in caplog.records
        if record.name.endswith("pace")
    ]


def test_buckets_that_fall_behind_say_so_once_and_once_more_when_they_do_not(
    store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    bench = Slow(store)
    assert bench.losing(1, 3) == [False] * 3  # it catches up
    assert bench.losing(3, 6) == [False] * 3 + [True] * 3
    assert bench.losing(1, 2) == [True] * 2  # two are a moment
    assert bench.losing(3, 2) == [True] * 2
    assert bench.losing(1, 4) == [True] * 3 + [False]
    before_and_after = "the oldest of what waits went from 97.0 s to 100.1 s of age,"
    assert told(caplog) == [
        ("WARNING", f"losing ground: over 3 buckets {before_and_after}"),
        ("INFO", "keeping up again: the oldest of what waits is 100.2 s old"),
    ]


def test_a_bucket_that_leaves_nothing_loses_no_ground_however_long_it_takes(
    store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Slow(store)
    bench.feed.commits, bench.clock.at = 2, BEGIN + 2 * SECOND
    for takes in range(1, 9):
        assert bench.losing(takes, 1) == [False]
        bench.feed.commits += 2
    assert told(caplog) == []


def test_a_plan_that_is_made_anew_is_no_bucket(
    store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Slow(store)
    failures = iter(range(3))

    def fails(*_: int) -> bool:
        failed = next(failures, None) is not None
        bench.clock.at += 3 * SECOND if failed else 0
        return failed

    bench.feed.fails = fails
    assert bench.losing(0, 3) == [False] * 3
    assert next(failures, None) is None
    assert told(caplog) == []


def test_buckets_after_which_what_waits_is_as_old_as_before_keep_up() -> None:
    pace = Pace()
    for bucket in range(1, 9):
        now = BEGIN + 2 * bucket * SECOND
        plan = Plan("b", bucket, 0, now, now, more=True)
        assert pace.planned(plan, now - 97 * SECOND) is None


def test_it_is_over_once_nothing_waits(store: SqlStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    bench = Slow(store)
    assert bench.losing(3, 4)[-1]
    bench.takes, bench.feed.commits = 0, bench.loop.state.cursors["t"].version + 1
    assert bench.loop.bucket() is None
    assert [level for level, _ in told(caplog)] == ["WARNING", "INFO"]
    assert store.of("loop").status.shown()["losing_ground_since"] is None


def test_a_monitor_reads_it(store: SqlStore) -> None:
    bench = Slow(store)
    for losing in (0, 1):
        bench.losing(3, 2)
        source = Source(store)
        text = Metrics(source).text(source._status()).decode()
        assert f'tidegate_losing_ground{{rulebook="loop"}} {losing}.0' in text
