"""Timers of a rule that is parked: they wait for `enable`, and nothing waits for them."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.bench import Bench
from tidegate.engine.core.state import BucketReport
from tidegate.engine.store import SqlStore

LIMITED = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}, other: {signal: {}}}
settings: {carried_per_key_max: 3, bucket_rows_max: 3, timers_per_bucket_max: LIMIT}
rules:
  a: {on: "A*(row, other, [5 s])", context: chronicle}
  b: {on: row, do: [{sql: INSERT INTO out SELECT id FROM event}]}
"""


def parked(store: SqlStore, limit: int) -> Bench:
    """Rule a has three open windows and is parked by the fourth row; twelve seconds later."""
    bench = Bench(store, commits=16, text=LIMITED.replace("LIMIT", str(limit)))
    assert bench.drain() == [3, 3, 3, 3, 3, 1]
    assert bench.loop.state.parked == {"a"}
    return bench


def some(bench: Bench, buckets: int = 12) -> list[BucketReport]:
    """As many as there are, or so many."""
    found = (bench.loop.bucket() for _ in range(buckets))
    return [report for report in found if report is not None]


def test_g13_nothing_waits_for_the_timers_of_a_parked_rule(store: SqlStore) -> None:
    bench = parked(store, 100)
    assert some(bench) == []
    assert (bench.loop.planner.idle, bench.loop.planner.due) == (True, None)
    bench.restart()
    assert len(some(bench)) <= 1  # the first bucket knows which nodes are of which rules


@pytest.mark.timeout(30)
@pytest.mark.parametrize(("limit", "buckets"), [(1, [1, 1, 1]), (2, [2, 1]), (3, [3]), (9, [3])])
def test_g13_timers_that_are_overdue_fire_a_few_a_bucket(
    store: SqlStore, limit: int, buckets: list[int]
) -> None:
    bench = parked(store, limit)
    before = bench.loop.state.watermark
    store.of("loop").controls.ask("enable", "a")
    reports = some(bench)
    assert [report.detections for report in reports][: len(buckets)] == buckets
    assert [report.watermark for report in reports[:-1]] == [before] * (len(reports) - 1)
    bench.feed.commits = 17
    assert next((r.rows, r.detections) for r in some(bench)) == (1, 1)
    bench.clock.at += 5_000_000
    assert [report.detections for report in some(bench)] == [1]  # the window of the new row
    assert bench.sink.effects == Counter(("b", n) for n in range(17))
    assert bench.loop.state.parked == frozenset()
