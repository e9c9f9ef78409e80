"""What an engine does is said when it is true, and nothing is written while nothing changes."""

from __future__ import annotations

import time

import pytest

from tests.support.bench import BOOK, Bench
from tidegate.engine.control.status import status_of
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.core.ports import OutageError, SinkError
from tidegate.engine.store import LeaseKeeper, SqlStore
from tidegate.engine.store.lease import Lease


class Said(list[Activity]):
    """What a loop has said, as a store is told: what is new only."""

    def __call__(self, activity: Activity) -> None:
        if not self or activity != self[-1]:
            self.append(activity)


def test_it_catches_up_with_what_it_counts_then_it_is_idle(store: SqlStore) -> None:
    bench = Bench(store, 4)
    bench.loop.ports.say = said = Said()
    bench.drain()
    first, *_, last = said
    assert (first.state, first.doing, first.commits) == ("starting", "taking its first bucket", 4)
    assert last.state == "idle"
    assert first.oldest is not None
    assert first.looked_at is not None
    assert first.oldest < first.looked_at
    assert not first.ready  # what is committed from here on is seen once the bucket is there
    number = len(said)
    for _ in range(3):
        bench.clock.later(60)
        assert bench.loop.bucket() is None
    assert len(said) == number  # nothing is new


def test_an_idle_engine_has_seen_all_up_to_its_last_look(store: SqlStore) -> None:
    bench = Bench(store, 4)
    keeper = Keeper(store, bench)
    bench.drain()
    watermark = store.of("loop").status.shown()["watermark"]
    bench.clock.later(1_440)
    bench.loop.bucket()
    keeper.renew()
    status = status_of(store, bench.book)
    assert status["watermark"] == watermark
    assert status["seen_until"] > watermark
    assert status["looked_at"] >= status["seen_until"]
    assert status["lag"]["commits"] == 0
    assert keeper.writes == ["starting", "catching up", "idle"]  # no bucket, no write, of the look


def test_what_a_bucket_has_taken_is_no_backlog_while_its_actions_run(store: SqlStore) -> None:
    """Of four commits, two in each bucket: it says so with each of its actions."""
    bench = Bench(store, 4, BOOK + "settings: {bucket_rows_max: 2}\n")
    keeper = Keeper(store, bench)
    found: list[tuple[str, int]] = []

    def look(_: Entry) -> None:
        status = status_of(store, bench.book)
        found.append((status["state"], status["behind"]["commits"]))

    bench.sink.fails = look
    bench.loop.bucket()
    assert found == [("catching up", 2)] * 2
    bench.loop.bucket()
    assert found[2:] == [("catching up", 0)] * 2
    assert keeper.activity is not None
    assert keeper.activity.oldest is None


def test_an_outage_and_a_full_outbox_leave_what_is_known(store: SqlStore) -> None:
    bench = Bench(store, 4, BOOK + "settings: {bucket_rows_max: 2, outbox_entries_max: 1}\n")
    keeper = Keeper(store, bench)
    bench.sink.fails = lambda _: SinkError("no answer")
    bench.loop.bucket()
    assert bench.loop.bucket() is None
    status = status_of(store, bench.book)
    assert (status["state"], status["behind"]["commits"]) == ("waiting", 2)
    keeper.say(Activity("waiting", "an outage to end"))
    assert status_of(store, bench.book)["behind"]["commits"] == 2


def test_it_says_which_entry_it_waits_for(store: SqlStore) -> None:
    bench = Bench(store, 1)
    bench.loop.ports.say = said = Said()
    bench.sink.fails = lambda entry: SinkError("no answer") if entry.rule == "a" else None
    bench.drain()
    assert said[-1].state == "waiting"
    assert said[-1].doing.startswith("entry 1 of rule a, to be tried again at ")
    bench.sink.fails = lambda entry: None  # noqa: ARG005
    bench.clock.later(3_600)
    bench.drain()
    assert said[-1].state == "idle"


def test_the_keeper_says_when_it_was_looked_last_and_repeats_what_the_store_has_missed(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, away = Lease.say, [True]

    def say(lease: Lease, activity: Activity) -> None:
        if away[0]:
            raise OutageError("store-unreachable", "no answer", "")
        real(lease, activity)

    monkeypatch.setattr(Lease, "say", say)
    with LeaseKeeper(store, "loop", 1) as keeper:
        keeper.say(Activity("idle", looked_at=1))
        assert store.of("loop").status.shown()["state"] == "starting"
        away[0] = False
        keeper.say(Activity("idle", looked_at=1))
        assert store.of("loop").status.shown()["state"] == "idle"
        away[0] = True  # nothing is said any more: what follows comes with the renewal
        keeper.say(Activity("idle", looked_at=86_400_000_000))
        for _ in range(600):
            if store.of("loop").status.shown()["looked_at"] == "1970-01-02T00:00:00Z":
                break
            time.sleep(0.05)
        assert store.of("loop").status.shown()["looked_at"] == "1970-01-02T00:00:00Z"
    assert store.of("loop").status.shown()["state"] == "stopped"


class Keeper:
    """Says to a store what a bench's loop says, as a lease's keeper does."""

    def __init__(self, store: SqlStore, bench: Bench) -> None:
        self.store, self.epoch = store, bench.epoch
        self.writes: list[str] = []
        self.activity: Activity | None = None
        bench.loop.ports.say = self.say

    def say(self, activity: Activity) -> None:
        if activity != self.activity:
            self.writes.append(activity.state)
            self.store.of("loop", self.epoch).lease.say(activity)
        self.activity = activity

    def renew(self) -> None:
        self.store.of("loop", self.epoch).lease.renew(600, self.activity)
