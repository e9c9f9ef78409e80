"""The loop over signals and tables of the test's own: what it looks at, and when it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support.bench import BOOK, Bench
from tests.support.make import BEGIN, SECOND, unplaced_by_event
from tidegate.engine.core.values import Signal
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store.signals import Signals

TOLD = (
    BOOK
    + """\
  c: {on: told, do: [{sql: INSERT INTO out SELECT id FROM event}]}
settings: {signals_max: 2}
"""
)
TOLD = TOLD.replace("events: {", "events: {told: {signal: {id: bigint}}, ")


@pytest.fixture
def store(slow_store_url: str) -> Iterator[SqlStore]:
    """On both databases."""
    with open_store(slow_store_url, create=True) as opened:
        opened.of("loop").versions.register(BOOK, None)
        yield opened


def tell(store: SqlStore, number: int, event: str = "told", fields: Any = None) -> None:
    at = BEGIN + number * 1_000
    fields = {"id": number} if fields is None else fields
    store.of("loop").signals.raise_signal(Signal(f"{event}-{number}", event, fields, at))


def test_g04_what_was_visible_is_done_cap_or_not_and_nothing_else_is_waited_for(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=0, text=TOLD)
    bench.drain()
    now = bench.clock()
    for n in range(5):
        tell(store, (now - BEGIN) // 1_000 + n)
        tell(store, n, "no_longer_declared")
    tell(store, (now - BEGIN) // 1_000 + 2_000, fields={"id": "text"})
    bench.clock.later(60)
    seen = bench.loop.visible()
    assert not bench.loop.done(seen)
    buckets = 0
    while not bench.loop.done(seen):
        assert bench.loop.bucket()
        buckets += 1
        tell(store, (now - BEGIN) // 1_000 + 3_000 + buckets)
    assert buckets == 3
    assert unplaced_by_event(store, "loop") == {"no_longer_declared": 5, "told": 3}
    bench.drain()
    assert unplaced_by_event(store, "loop") == {"no_longer_declared": 5}
    assert bench.loop.planner.idle
    assert len(bench.sink.effects) == bench.sink.effects.total() == 5 + 3
    assert store.of("loop").status.shown()["rejected_rows"] == 1


def test_an_idle_look_is_one_query_and_one_listing_of_each_source(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(store, commits=3, text=TOLD)
    bench.loop.ports.check_lease = lambda: None  # as in an engine: `arrivals` asks for the epoch
    bench.drain()
    asked: Counter[str] = Counter()
    methods = {name: getattr(bench.feed, name) for name in ("head", "version")}
    for name in methods:

        def counted(*given: Any, name: str = name) -> Any:
            asked[name] += 1
            return methods[name](*given)

        monkeypatch.setattr(bench.feed, name, counted)

    def note(_c: object, _cursor: object, text: str, *_: object) -> None:
        asked["queries"] += not text.startswith("BEGIN")

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        assert bench.loop.bucket() is None
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    assert bench.loop.planner.idle
    assert asked == {"queries": 1, "head": 1}


def test_g02_what_comes_while_the_engine_looks_keeps_its_time(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(store, commits=1, text=TOLD)
    bench.drain()
    bench.feed.commits = 2
    raised, look = [], Signals.arrivals

    def late(*given: Any) -> Any:
        found = look(*given)
        if not raised:
            raised.append(bench.clock())
            store.of("loop").signals.raise_signal(Signal("late", "told", {"id": 7}, raised[0]))
        return found

    monkeypatch.setattr(Signals, "arrivals", late)
    bench.drain()
    placed = sa.text("SELECT bucket, received_at, instant FROM signals")
    with store.database.read() as connection:
        ((bucket, received_at, instant),) = connection.execute(placed).all()
    assert (bucket, received_at, instant) == (3, raised[0], raised[0])


def test_g02_a_wait_ends_when_the_watermark_passes_what_waits(store: SqlStore) -> None:
    slow = TOLD.replace("signals_max: 2", "commit_slack_ms: 5000")
    bench = Bench(store, commits=1, text=slow)
    bench.loop.ports.now = lambda: BEGIN + SECOND  # type: ignore[assignment]
    assert bench.loop.bucket()  # the first plan sets the cursor
    assert bench.loop.bucket() is None
    assert not bench.loop.planner.idle
    assert bench.loop.wait_seconds == pytest.approx(4.000998)


def test_g02_the_clock_is_read_before_anything_is_listed(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes while the store answers, for a minute, is of a later bucket."""
    bench = Bench(store, commits=1)
    begun, arrivals = bench.clock.at, Signals.arrivals

    def slowly(*asked: object) -> object:
        found = arrivals(*asked)
        bench.clock.later(60)
        return found

    monkeypatch.setattr(Signals, "arrivals", slowly)
    assert bench.loop.bucket() is not None
    assert bench.loop.state.watermark is not None
    assert bench.loop.state.watermark < begun + SECOND
