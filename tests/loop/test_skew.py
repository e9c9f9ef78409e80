"""Commits whose log says another time than the engine's clock: which stay, and which are moved."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from tests.support.bench import BOOK, Bench
from tests.support.make import SECOND
from tidegate.engine.cli.screens import status_lines
from tidegate.engine.control.status import whole_status
from tidegate.engine.core.text.times import micros_text
from tidegate.engine.store import SqlStore, open_store

HOUR = 3_600 * SECOND
ONE_AFTER_ANOTHER = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}}
rules:
  b: {on: row, cooldown: 10 s, do: [{sql: INSERT INTO out SELECT id FROM event}]}
"""


@pytest.fixture
def store(slow_store_url: str) -> Iterator[SqlStore]:
    """On both databases."""
    with open_store(slow_store_url, create=True) as opened:
        opened.of("loop").versions.register(BOOK, None)
        yield opened


def test_g01_commits_made_during_a_slow_listing_stand_at_their_times(store: SqlStore) -> None:
    """As it was seen: two commits 14 s apart, both more than ten seconds after the engine looked at
    its clock. Moved back to it, the second one would be within the first one's cooldown."""
    bench = Bench(store, commits=1, text=ONE_AFTER_ANOTHER)
    bench.drain()
    begun = bench.clock() // 1_000 * 1_000

    def slowly() -> None:
        bench.feed.meanwhile = lambda: None
        bench.feed.instants = {1: begun + 14 * SECOND, 2: begun + 28 * SECOND}
        bench.feed.commits = 3
        bench.clock.later(30)

    bench.feed.meanwhile = slowly
    assert bench.drain() == []  # nothing of it was there at the begin of the look
    bench.drain()
    version_at = store.of("loop").buckets.version_at
    assert [version_at("t", begun + n * SECOND) for n in (13, 14, 27, 28)] == [
        0, 1, 1, 2,
    ]  # fmt: skip
    assert bench.sink.effects == {("b", 0): 1, ("b", 1): 1, ("b", 2): 1}
    status = store.of("loop").status.shown()
    assert (status["adjusted_commits"], status["moved"]) == (0, [])


def test_g01_what_is_moved_is_told_counted_and_listed(
    store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The second commit is late by much, the third one little; a writer is an hour ahead."""
    bench = Bench(store, commits=0)
    bench.drain()
    now = bench.clock.at
    bench.feed.commits = 4
    bench.feed.instants = {0: now, 1: now - 5 * SECOND, 2: now, 3: now + HOUR}
    bench.clock.later(1)
    with caplog.at_level(logging.INFO, "tidegate.engine.act.messages"):
        bench.drain()
    told = [(r.levelname, r.getMessage()) for r in caplog.records if "is moved" in r.getMessage()]
    ahead = "its writer's clock is ahead (skew_max_seconds)"
    late = "it comes after the version before and what buckets hold already"
    assert [(level, text.rpartition(": ")[2]) for level, text in told] == [
        ("WARNING", late),
        ("INFO", late),
        ("WARNING", ahead),
    ]
    looked = now + SECOND + 1_000  # when the engine looked at its clock
    logged = {1: now - 5 * SECOND, 2: now, 3: now + HOUR}
    placed = {1: now + 1_000, 2: now + 2_000, 3: looked}
    assert [re.sub(" is moved|: it.*", "", text) for _, text in told] == [
        f"table t: version {n} from {moment(logged[n])} to {moment(placed[n])}" for n in logged
    ]
    status = store.of("loop").status.shown()
    assert status["adjusted_commits"] == 3
    assert [one.pop("bucket") for one in status["moved"]] == [2, 2, 3]
    assert status["moved"] == [
        {"table": "t", "version": n, "from": moment(logged[n]), "to": moment(placed[n])}
        for n in logged
    ]
    lines = "\n".join(status_lines(whole_status(store, bench.book), 200))
    assert "3 commits with their time moved" in lines
    there = f"from {moment(logged[3])}, to {moment(placed[3])}".replace("T", " ").replace("Z", "")
    assert f"  table t, version 3, {there}, bucket 3" in lines


def test_g01_many_that_are_moved_are_told_in_one_line_and_status_lists_the_last_ten(
    store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(store, commits=0)
    bench.drain()
    bench.feed.commits = 25  # of times before the first bucket
    bench.clock.later(1)
    with caplog.at_level(logging.INFO, "tidegate.engine.act.messages"):
        bench.drain()
    told = [r.getMessage() for r in caplog.records if "moved" in r.getMessage()]
    assert len(told) == 11
    assert told[-1].startswith("15 commits more are moved")
    status = store.of("loop").status.shown()
    assert status["adjusted_commits"] == 25
    assert [one["version"] for one in status["moved"]] == [*range(15, 25)]


def moment(micros: int) -> str:
    return f"{micros_text(micros)}Z"
