"""What operators ask for: skip, redrive, reset."""

# ruff: noqa: ARG005 - fakes take what the ports give

from __future__ import annotations

from collections import Counter

from tests.support.bench import BOOK, Bench
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.statement import encode
from tidegate.engine.store import SqlStore


def test_g18_skip_seals_an_entry_and_the_queue_goes_on(store: SqlStore) -> None:
    bench = Bench(store, commits=1)
    bench.sink.fails = lambda entry: SinkError("[NO] never") if entry.number == 1 else None
    bench.drain()
    bench.feed.commits = 2
    bench.drain()
    store.of("loop").controls.ask("skip", "1")
    bench.clock.later(1)
    bench.drain()
    assert bench.states() == [(1, "pending"), (3, "pending")]  # it could not be sealed
    assert not store.of("loop").controls.pending()
    store.of("loop").controls.ask("skip", "1", option="unsealed")
    bench.drain()
    assert bench.states() == []
    assert bench.sink.entries == [("b", 2), ("b", 4), ("a", 3)]


def test_g18_a_sealed_entry_cannot_land_any_more(store: SqlStore) -> None:
    bench = Bench(store, commits=1)
    bench.sink.fails = lambda entry: SinkError("[NO] not yet") if entry.rule == "a" else None
    bench.drain()
    (late,) = (e for e in store.of("loop").outbox.open_entries())
    bench.sink.fails = lambda entry: None
    store.of("loop").controls.ask("skip", "1")
    bench.drain()
    bench.sink.run(
        late, store.of("loop").outbox.firings(1, "a")
    )  # it was still under way somewhere
    assert bench.sink.entries == [("b", 2)]


def test_g18_what_landed_is_not_skipped_but_done(store: SqlStore) -> None:
    bench = Bench(store, commits=1)
    bench.sink.lost = lambda entry: SinkError("[IO] no answer")
    bench.drain()
    store.of("loop").controls.ask("redrive", "2")  # entry 1 is ahead of it, but of another rule
    store.of("loop").controls.ask("skip", "1")
    bench.drain()
    assert bench.sink.effects == bench.expected()
    assert bench.states() == []
    assert [getattr(store.of("loop").outbox.entry(n), "state", None) for n in (1, 2)] == [
        "done",
        "done",
    ]


def test_g18_an_entry_that_is_passed_over_leaves_those_ahead_of_it_their_turn(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=1)
    bench.sink.fails = lambda entry: SinkError("[NO] not yet") if entry.number == 1 else None
    bench.drain()
    bench.feed.commits = 2
    bench.drain()
    store.of("loop").controls.ask("skip", "3")  # a seal would pass the marker that entry 1 needs
    bench.drain()
    assert bench.states() == [(1, "pending")]
    bench.sink.fails = lambda entry: None
    bench.clock.later(60)
    bench.drain()
    assert bench.states() == []
    assert bench.sink.entries == [("b", 2), ("b", 4), ("a", 1)]


def test_g18_a_redriven_entry_has_the_present_text_and_the_place_of_the_old_one(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=1)
    bench.sink.fails = lambda entry: (
        SinkError("[NO] x") if "SELECT id" in encode(entry.statement) else None
    )
    bench.drain()
    bench.feed.commits = 2
    bench.drain()
    bench.write(BOOK.replace("SELECT id", "SELECT 1 + id"))
    bench.restart()
    bench.drain()
    assert bench.states() == [(1, "pending"), (2, "pending"), (3, "pending"), (4, "pending")]
    store.of("loop").controls.ask("redrive", "3")
    store.of("loop").controls.ask("redrive", "1")
    store.of("loop").controls.ask("redrive", "2")
    store.of("loop").controls.ask("skip", "4")
    bench.clock.later(60)
    bench.sink.fails = lambda entry: None
    bench.drain()
    assert bench.states() == []
    # Entry 3 was redriven first, and still runs after the one that stands for entry 1.
    assert bench.sink.entries == [("a", 6), ("b", 7), ("a", 5)]
    assert bench.sink.effects == Counter({("a", 0): 1, ("a", 1): 1, ("b", 0): 1})


def test_g18_an_entry_of_a_rule_that_is_gone_still_runs_and_cannot_be_redriven(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=1)
    bench.sink.fails = lambda entry: SinkError("[NO] x") if entry.rule == "b" else None
    bench.drain()
    bench.write("\n".join(line for line in BOOK.splitlines() if "  b:" not in line))
    bench.restart()
    store.of("loop").controls.ask("redrive", "2")
    bench.drain()
    assert bench.states() == [(2, "pending")]
    bench.sink.fails = lambda entry: None
    bench.clock.later(60)
    bench.drain()
    assert bench.sink.effects == bench.expected()


def test_g24_a_reset_of_a_table_that_raises_no_events_keeps_nothing_waiting(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=2)
    bench.drain()
    store.of("loop").controls.ask("reset", "out")
    seen = bench.loop.visible()
    assert bench.drain() == []
    assert bench.loop.done(seen)
