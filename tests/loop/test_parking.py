"""A rule that reaches a limit is parked, and enabled again."""

from __future__ import annotations

from collections import Counter

from tests.support.bench import Bench
from tests.support.make import BEGIN, SECOND
from tidegate.engine.core.state import Parked
from tidegate.engine.store import SqlStore

LIMITED = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}, gone: {on: delete, table: t}}
settings: {carried_per_key_max: 3, bucket_rows_max: 2}
rules:
  a: {on: row ; gone, context: chronicle}
  b: {on: row, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  c: {on: a or gone, do: [{sql: INSERT INTO out SELECT id FROM event}]}
"""


def parked(store: SqlStore) -> list[tuple[str, str]]:
    found = [o for o in store.of("loop").rule_states.obstacles() if isinstance(o, Parked)]
    return [(one.rule, one.reason) for one in found]


def test_g13_a_limit_parks_its_rule_and_those_that_use_it_and_the_rest_goes_on(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=8, text=LIMITED)
    assert bench.drain() == [2, 2, 2, 2]
    (a, reason), c = parked(store)
    assert a == "a"
    assert "at most 3 are carried (setting carried_per_key_max)" in reason
    assert c == ("c", "it uses a")
    first = [
        one.instant for one in store.of("loop").rule_states.obstacles() if isinstance(one, Parked)
    ]
    assert first[0] == first[1]
    assert 1_000_000 < first[0] - BEGIN < 2_000_000  # after the bucket of versions 0 and 1
    kept = {
        n: t
        for n, t in store.of("loop").buckets.load().carried.tables.items()
        if n.startswith("node:")
    }
    assert sum(table.num_rows for table in kept.values()) == 2  # as before the bucket that parked
    assert bench.sink.effects == Counter({("b", n): 1 for n in range(8)})
    bench.restart()
    bench.feed.commits = 10
    bench.drain()
    assert len(parked(store)) == 2  # a new run changes nothing
    assert store.of("loop").status.shown()["parked_rules"][0]["passed_over"] == 8  # versions 2 to 9


def test_g13_an_enabled_rule_goes_on_with_what_it_had(store: SqlStore) -> None:
    bench = Bench(store, commits=4, text=LIMITED)
    bench.drain()
    assert [rule for rule, _ in parked(store)] == ["a", "c"]
    store.of("loop").controls.ask("enable", "a")
    store.of("loop").controls.ask("enable", "c")
    bench.drain()
    assert parked(store) == []
    assert not store.of("loop").controls.pending()
    bench.feed.commits = 5
    bench.drain()
    assert parked(store) == []  # it carries two and one more: three is not past the limit
    bench.feed.commits = 6
    bench.drain()
    assert [rule for rule, _ in parked(store)] == ["a", "c"]


def test_g13_an_enable_of_a_rule_that_is_not_parked_is_answered(store: SqlStore) -> None:
    bench = Bench(store, commits=1, text=LIMITED)
    bench.drain()
    store.of("loop").controls.ask("enable", "a")
    seen = bench.loop.visible()
    assert bench.drain() == []
    assert not store.of("loop").controls.pending()
    assert bench.loop.done(seen)


def test_g13_a_parked_rule_that_is_deleted_is_forgotten(store: SqlStore) -> None:
    bench = Bench(store, commits=4, text=LIMITED)
    bench.drain()
    lines = LIMITED.splitlines()
    bench.write("\n".join(line for line in lines if line[:4] not in ("  a:", "  c:")))
    bench.restart()
    bench.feed.commits = 5
    bench.drain()
    assert parked(store) == []


def test_g22_a_rule_that_fires_too_often_within_a_minute_is_parked_until_it_is_enabled(
    store: SqlStore,
) -> None:
    """It is counted over buckets and starts. What catches up with an older time is not."""
    text = LIMITED.replace("carried_per_key_max: 3", "firings_per_rule_per_minute_max: 3")
    text = text.replace("c: {on: a or gone", "c: {on: b ; gone")
    bench = Bench(store, commits=0, text=text)
    bench.clock.at = BEGIN + 70 * SECOND
    bench.feed.commits = 12
    bench.drain()
    assert parked(store) == []
    bench.feed.commits = 14
    bench.drain()
    bench.restart()
    bench.feed.commits = 15
    bench.drain()
    assert parked(store) == []
    bench.restart()
    bench.feed.commits = 17
    assert bench.drain() == [2]  # what parks it is acted on
    (b, reason), c = parked(store)
    assert (b, c) == ("b", ("c", "it uses b"))
    assert reason.startswith("it fired 5 times within a minute, at most 3 are let (firings_per")
    bench.feed.commits = 18
    bench.drain()
    assert bench.sink.effects == Counter({("b", n): 1 for n in range(17)})
    store.of("loop").controls.ask("enable", "b")
    store.of("loop").controls.ask("enable", "c")
    bench.drain()
    bench.restart()
    bench.feed.commits = 20
    bench.drain()
    assert parked(store) == []  # it is counted from there on
    assert bench.loop.state.fired == store.of("loop").buckets.load().fired != ()
    bench.clock.later(60)
    bench.feed.commits = 22
    bench.drain()
    assert bench.loop.state.fired == store.of("loop").buckets.load().fired == ()
