"""Timers that are due: each bucket fires so many at most, in order, and drops none."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.bench import Bench
from tidegate.engine.store import SqlStore

WAITING = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}, other: {signal: {}}}
rules:
  a: {on: "not(other)[row, [1 h]]", do: [{sql: INSERT INTO out SELECT id FROM event}]}
settings: {timers_per_bucket_max: LIMIT}
"""


@pytest.mark.parametrize(("limit", "buckets"), [(100, [5, 0]), (2, [2, 2, 1])])
def test_g08_more_timers_than_a_bucket_may_have_make_more_buckets(
    store: SqlStore, limit: int, buckets: list[int]
) -> None:
    bench = Bench(store, commits=5, text=WAITING.replace("LIMIT", str(limit)))
    assert bench.drain() == [0]
    assert bench.loop.planner.due is not None  # the first timer
    bench.clock.at += 3_600_000_000
    assert [n for n in bench.drain() if n] == [n for n in buckets if n]
    assert bench.sink.effects == Counter(("a", n) for n in range(5))
    assert bench.loop.planner.due is None


def test_a_timer_that_rang_while_the_engine_was_down_fires_at_its_own_time(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=2, text=WAITING.replace("LIMIT", "1"))
    bench.drain()
    bench.clock.at += 24 * 3_600_000_000
    bench.restart()
    assert bench.drain() == [1, 1]
    assert bench.sink.effects == Counter([("a", 0), ("a", 1)])
