"""Outages of store and tables, and a lease that is lost."""

# ruff: noqa: ARG001, ARG005 - fakes take what the ports give

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest

from tests.support.bench import Bench
from tidegate.engine.core.ports import OutageError
from tidegate.engine.store import SqlStore
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.buckets import Buckets
from tidegate.engine.store.outbox import Outbox
from tidegate.rules.errors import EngineError


@pytest.mark.parametrize(
    ("part", "where"), [(Buckets, "commit"), (Buckets, "acted"), (Outbox, "settle")]
)
@pytest.mark.parametrize("committed", [True, False])
def test_g16b_an_outage_of_the_store_loses_and_doubles_nothing(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, part: type, where: str, committed: bool
) -> None:
    """The answer of a transaction is lost, whether it was committed or not."""
    bench = Bench(store, commits=3)
    real = getattr(part, where)
    outages: list[int] = []

    def away(self: Bound, *given: object) -> object:
        if len(outages) == 2:
            return real(self, *given)
        outages.append(1)
        if committed:
            real(self, *given)
        raise OutageError("store-unreachable", "the store is away")

    monkeypatch.setattr(part, where, away)
    for _ in range(2):
        with pytest.raises(OutageError):
            bench.drain()
        bench.loop.recover()
        bench.feed.commits += 1
    bench.drain()
    assert len(outages) == 2
    assert bench.sink.effects == bench.expected()
    assert bench.states() == []


def test_g16b_the_compiled_rulebook_and_state_change_with_the_transaction_only(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(store, commits=1)
    before = bench.loop.compiled, bench.loop.state

    def away(*given: object) -> None:
        raise OutageError("store-unreachable", "the store is away", "wait")

    with monkeypatch.context() as patch:
        patch.setattr(Buckets, "commit", away)
        with pytest.raises(OutageError):
            bench.drain()
    assert (bench.loop.compiled, bench.loop.state) == before
    bench.drain()  # without `recover`
    assert bench.sink.effects == bench.expected()


def test_g07_an_outage_is_no_attempt_and_answers_no_operator(store: SqlStore) -> None:
    bench = Bench(store, commits=1)
    away = OutageError("table-unreadable", "the storage is away", "wait")
    bench.sink.fails = lambda entry: away
    for control in ("", "skip"):
        if control:
            store.of("loop").controls.ask(control, "1")
        with pytest.raises(OutageError):
            bench.drain()
        bench.loop.recover()
    assert [control.subject for control in store.of("loop").controls.pending()] == ["1"]
    entries = store.of("loop").outbox.open_entries()
    assert [(e.state, e.progress.attempts, e.progress.error) for e in entries] == [
        ("pending", 0, None)
    ] * 2


def test_g21_a_lease_that_is_lost_ends_the_run_before_anything_is_listed(store: SqlStore) -> None:
    bench = Bench(store, commits=1)

    def lost() -> None:
        raise EngineError("lease-lost", "another engine runs it")

    bench.loop.ports.check_lease = lost
    with pytest.raises(EngineError, match="another engine runs it"):
        bench.loop.bucket()
    assert (bench.loop.state.bucket, bench.feed.read_spans) == (0, [])


def test_g07_a_store_that_may_not_be_written_stops_by_name_and_loses_nothing(
    store: SqlStore,
) -> None:
    bench = Bench(store, commits=2)
    bench.drain()
    pragma(store, "query_only = ON")
    with pytest.raises(EngineError, match="attempt to write a readonly database") as stopped:
        go_on(bench, 1)
    assert stopped.value.code == "store-failed"
    assert "the last bucket committed stands" in stopped.value.hint
    pragma(store, "query_only = OFF")
    bench.restart()
    bench.drain()
    assert bench.sink.effects == bench.expected()
    assert bench.states() == []


def test_g07_a_full_disk_under_the_store_is_an_outage_and_loses_nothing(store: SqlStore) -> None:
    bench = Bench(store, commits=2)
    bench.drain()
    pragma(store, "max_page_count = 1")
    with pytest.raises(OutageError, match="database or disk is full") as away:
        go_on(bench, 200)  # till the pages that are free are used up
    assert away.value.code == "store-unusable"
    assert "see to its disk" in away.value.hint
    pragma(store, "max_page_count = 1000000")
    bench.loop.recover()
    bench.drain()
    assert bench.sink.effects == bench.expected()
    assert bench.states() == []


def test_g07_a_disk_that_fails_under_the_store_is_an_outage_and_loses_nothing(
    store: SqlStore,
) -> None:
    """A write beyond a greatest size of files fails, which SQLite tells by an extended code."""
    bench = Bench(store, commits=2)
    bench.drain()
    file = store.database.file
    assert file is not None
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path(f"{file}-wal").stat().st_size, hard))
    try:
        with pytest.raises(OutageError, match="disk I/O error") as away:
            go_on(bench, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert away.value.code == "store-unusable"
    bench.loop.recover()
    bench.drain()
    assert bench.sink.effects == bench.expected()
    assert bench.states() == []


def test_g07_a_full_disk_of_the_machine_is_an_outage_once_the_smallest_span_has_no_room(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(store, commits=2)
    bench.drain()
    bench.feed.commits = 6

    def full(*_: object) -> object:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(bench.feed, "read", full)
        with pytest.raises(OutageError, match=r"t version 2 to 2.*No space left on device") as away:
            bench.drain()
    assert away.value.code == "disk-full"
    assert "TMPDIR and spark.local.dir" in away.value.hint
    assert "reset" not in away.value.hint
    bench.loop.recover()
    bench.drain()
    assert bench.sink.effects == bench.expected()
    assert bench.states() == []


@pytest.mark.parametrize(
    ("port", "method", "code"),
    [
        ("feed", "head", "table-replaced"),
        ("feed", "head", "table-restored"),
        ("feed", "head", "feed-off"),
        ("feed", "read", "table-replaced"),
        ("feed", "read", "version-gone"),
        ("feed", "read", "spark-lost"),
        ("sink", "run", "spark-lost"),
        ("sink", "fate", "spark-lost"),
    ],
)
def test_g07_what_no_wait_mends_stops_by_name_in_mid_run_and_loses_nothing(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, port: str, method: str, code: str
) -> None:
    """At the second call of several; a later run goes on where this one ended."""
    bench = Bench(store, commits=2)
    bench.drain()
    bench.feed.commits = 5
    calls: list[int] = []
    real = getattr(getattr(bench, port), method)

    def broken(*given: object) -> object:
        calls.append(1)
        if len(calls) == 1 and method != "read":
            return real(*given)
        raise EngineError(code, "as it is now, nothing can go on", "mend it")

    with monkeypatch.context() as patch:
        patch.setattr(getattr(bench, port), method, broken)
        with pytest.raises(EngineError) as stopped:
            go_on(bench, 3)
    assert stopped.value.code == code
    bench.restart()
    bench.drain()
    assert bench.sink.effects == bench.expected()
    assert bench.states() == []


def go_on(bench: Bench, commits: int) -> None:
    for _ in range(commits):
        bench.feed.commits += 1
        bench.drain()


def pragma(store: SqlStore, text: str) -> None:
    """Of the one connection that a test's store has."""
    with store.database._reading.connect() as connection:
        connection.exec_driver_sql(f"PRAGMA {text}")
