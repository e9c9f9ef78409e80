"""Skip and redrive when what they need fails: an entry is as it was, or wholly passed over."""

from __future__ import annotations

import pytest

from tests.support.bench import BOOK, Bench
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.ports import OutageError, SinkError
from tidegate.engine.store import SqlStore
from tidegate.rules.model import Table


@pytest.fixture
def bench(store: SqlStore) -> Bench:
    """Entry 1 of rule `a` waits for its next attempt, entry 2 of rule `b` is done."""
    bench = Bench(store, commits=1)
    bench.sink.fails = lambda entry: SinkError("[NO] x") if entry.rule == "a" else None
    bench.drain()
    bench.sink.fails = lambda entry: None  # noqa: ARG005
    return bench


def test_g18_a_redrive_that_is_refused_leaves_the_entry_unsealed(
    store: SqlStore, bench: Bench
) -> None:
    """Its rule is gone, so nothing can take its place: it still runs with its own text."""
    bench.write("\n".join(line for line in BOOK.splitlines() if "  a:" not in line))
    bench.restart()
    bench.loop.runner.queues.clear()  # not due yet
    store.of("loop").controls.ask("redrive", "1")
    bench.loop.work()
    assert not store.of("loop").controls.pending()
    bench.restart()
    bench.clock.later(1)
    bench.drain()
    assert bench.states() == []
    assert bench.sink.effects == bench.expected()


def test_g18_a_target_that_cannot_be_looked_at_just_now_is_an_outage(
    store: SqlStore, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(table: Table) -> int:  # noqa: ARG001
        raise OSError("the storage is away")

    store.of("loop").controls.ask("redrive", "1")
    with monkeypatch.context() as patch:
        patch.setattr(bench.feed, "version", away)
        with pytest.raises(OutageError, match="the storage is away"):
            bench.loop.work()
    bench.loop.recover()
    bench.drain()
    assert not store.of("loop").controls.pending()
    assert bench.states() == []
    assert bench.sink.effects == bench.expected()


@pytest.mark.parametrize("kind", ["skip", "redrive"])
def test_g18_a_seal_whose_answer_is_lost_is_found_in_the_log(
    store: SqlStore, bench: Bench, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    real = bench.sink.seal

    def lost(entry: Entry) -> None:
        real(entry)
        raise SinkError("[IO] no answer")

    monkeypatch.setattr(bench.sink, "seal", lost)
    store.of("loop").controls.ask(kind, "1")
    bench.drain()
    assert bench.states() == []
    done = {"skip": [("b", 2)], "redrive": [("b", 2), ("a", 3)]}
    assert bench.sink.entries == done[kind]
