"""A stop ends a bucket between two statements, and nothing is lost or done twice (G14, G16)."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable

import pytest

from tests.loop.test_conditions import CONDITIONAL, FailingConditions
from tests.support.bench import Bench
from tidegate.engine.core.entries import Entry, Progress
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.core.ports import StoppedError
from tidegate.engine.quarantine.conditions import WatchedConditions
from tidegate.engine.quarantine.feed import WatchedFeed
from tidegate.engine.store import LeaseKeeper, SqlStore


class Stop:
    """Whether the engine was asked to stop; it is as soon as something was called `at` times."""

    def __init__(self, at: int) -> None:
        self.at, self.calls, self.asked = at, 0, False

    def call(self, *_: object) -> None:
        self.calls += 1
        self.asked = self.asked or self.calls == self.at


def bench_of(store: SqlStore, stop: Stop) -> Bench:
    """Every look at a table, read, condition and statement is a call."""
    bench = Bench(store, commits=2, text=CONDITIONAL)
    conditions = FailingConditions()
    conditions.why = None
    hold = conditions.hold
    conditions.hold = lambda asked: (stop.call(), hold(asked))[1]  # type: ignore[method-assign]
    bench.conditions = conditions
    bench.feed.meanwhile = bench.feed.fails = bench.sink.fails = stop.call  # none of them fails
    bench.restart()
    return bench


def begun(bench: Bench, stop: Callable[[], bool]) -> None:
    """Another engine, which looks whether it is to stop."""
    bench.restart()
    bench.loop.ports.stopped = stop
    bench.loop.ports.conditions = WatchedConditions(bench.conditions, bench.quarantine, stop)
    bench.loop.ports.feed = WatchedFeed(bench.feed, bench.quarantine, bench.book, stop)


@pytest.mark.parametrize("at", range(1, 8))
def test_wherever_it_is_stopped_nothing_more_begins_and_the_next_start_takes_it_up(
    store: SqlStore, at: int
) -> None:
    stop = Stop(at)
    bench = bench_of(store, stop)
    begun(bench, lambda: stop.asked)
    bench.drain()
    assert stop.calls == at if stop.asked else stop.calls < at
    begun(bench, lambda: False)
    bench.drain()
    assert bench.sink.effects == bench.expected()
    assert bench.states() == []


def test_what_is_given_up_is_told(store: SqlStore, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stop = Stop(2)  # while the table is read: its conditions are asked no more
    bench = bench_of(store, stop)
    begun(bench, lambda: stop.asked)
    assert bench.loop.bucket() is None
    assert store.of("loop").buckets.load().bucket == 0
    (said,) = (r.getMessage() for r in caplog.records if "given up" in r.getMessage())
    assert "bucket 1 is given up before its transaction" in said
    assert "(2 commits, 0 signals)" in said


def test_entries_that_are_left_are_told_and_done_by_the_next_start(
    store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench = Bench(store, commits=1)
    asked: list[Entry] = []
    bench.sink.fails = asked.append
    bench.loop.ports.stopped = lambda: bool(asked)
    assert bench.loop.bucket() is not None
    assert [e.rule for e in asked] == ["a"]
    bench.loop.finish()
    assert "stopped; 1 entry is open, which the next start takes up" in caplog.text
    bench.restart()
    bench.drain()
    assert bench.sink.effects == Counter({("a", 0): 1, ("b", 0): 1})


def test_an_entry_that_waits_for_its_turn_in_spark_stays_open(
    store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench = Bench(store, commits=1)
    stop = threading.Event()

    def waits(entry: Entry) -> None:
        if entry.rule == "a" and not stop.is_set():
            stop.set()
            raise StoppedError("while a text waited for its turn in Spark")

    bench.sink.fails = waits
    bench.loop.ports.stopped = stop.is_set
    assert bench.loop.bucket() is not None
    bench.loop.finish()
    assert "given up" not in caplog.text
    assert "stopped; 2 entries are open, which the next start takes up" in caplog.text
    (left, _) = bench.store.of("loop").outbox.open_entries()
    assert (left.rule, left.progress) == ("a", Progress())
    stop.clear()
    bench.sink.fails = lambda _: None
    bench.drain()
    assert bench.sink.effects == Counter({("a", 0): 1, ("b", 0): 1})
    assert bench.states() == []


def test_it_is_stopping_whatever_is_said_until_it_goes_on(store: SqlStore) -> None:
    def said() -> tuple[str, str]:
        status = store.of("loop").status.shown()
        return status["state"], status["doing"]

    with LeaseKeeper(store, "loop", 600) as keeper:
        keeper.say(Activity("starting", "starting Spark"))
        keeper.ends()
        assert said() == ("stopping", "starting Spark")
        keeper.say(Activity("catching up", commits=3))
        assert said() == ("stopping", "")
        keeper.ends("asking conditions, 3 of 12")
        assert said() == ("stopping", "asking conditions, 3 of 12")
        keeper.at("asking conditions, 4 of 12")
        assert said() == ("stopping", "asking conditions, 4 of 12")
        keeper.at("")
        keeper.goes_on()
        assert said() == ("catching up", "")
        assert store.of("loop").status.shown()["behind"]["commits"] == 3
    assert said() == ("stopped", "")
