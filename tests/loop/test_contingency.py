"""`within` and `otherwise`: an alternative for what is not done in time (G23)."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from tests.support.bench import Bench
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.values import Firings
from tidegate.engine.store import SqlStore
from tidegate.engine.store.tables import leases

BOOK = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}}
rules:
  pay:
    on: row
    retry: {attempts: ATTEMPTS, backoff: 10s..20s}
    within: 5 min
    do: [{sql: INSERT INTO out SELECT id FROM event}, {sql: INSERT INTO out SELECT id FROM event}]
    otherwise: [{sql: INSERT INTO out SELECT -id FROM event}]
"""


class Broken(Bench):
    """A loop whose second statement fails, except the alternative's."""

    def __init__(
        self, store: SqlStore, attempts: int, monkeypatch: pytest.MonkeyPatch, book: str = BOOK
    ) -> None:
        super().__init__(store, 2, book.replace("ATTEMPTS", str(attempts)))
        self.broken = True
        self.alternatives: list[list[int]] = []
        run = self.sink.run

        def failing(entry: Entry, firings: Firings) -> None:
            if entry.alternative:
                self.alternatives.append(firings.relation["id"].to_pylist())
            elif entry.statement.action == 1 and self.broken:
                raise SinkError("[NO] no")
            run(entry, firings)

        monkeypatch.setattr(self.sink, "run", failing)

    def on(self, seconds: int) -> None:
        """So much later."""
        for _ in range(seconds // 30):
            self.clock.later(30)
            self.loop.work()


@pytest.mark.parametrize("attempts", [2, 1_000])
def test_g23_what_is_not_done_in_time_has_its_alternative_done_once(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, attempts: int
) -> None:
    """Though it was dead before, or is tried on."""
    bench = Broken(store, attempts, monkeypatch)
    bench.drain()
    bench.on(270)
    assert bench.alternatives == []
    bench.on(60)
    assert bench.alternatives == [[0, 1]]
    bench.restart()
    bench.on(900)
    assert bench.alternatives == [[0, 1]]
    bench.broken = False
    if attempts == 2:
        ((dead, state),) = bench.states()
        assert state == "dead"
        store.of("loop").controls.ask("redrive", str(dead))
    bench.on(90)
    assert bench.states() == []
    assert bench.sink.effects["pay", 0] == 3  # its two statements, and the alternative


def test_g23_what_is_done_in_time_has_none(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Broken(store, 1_000, monkeypatch)
    bench.drain()
    bench.on(120)
    bench.broken = False
    bench.on(900)
    assert bench.alternatives == []
    assert bench.states() == []


def test_g23_downtime_does_not_count(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Broken(store, 1_000, monkeypatch)
    bench.drain()
    with store.database.write() as connection:  # nobody was there for ten minutes
        earlier = leases.c.alive_at - 600_000_000
        connection.execute(sa.update(leases).values(alive_at=earlier))
    bench.clock.later(600)
    bench.restart()
    bench.on(270)
    assert bench.alternatives == []
    bench.on(60)
    assert bench.alternatives == [[0, 1]]


def test_g23_time_that_is_caught_up_with_does_not_count(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are of an hour ago; the rule has its five minutes from when they are read."""
    one_by_one = f"{BOOK}settings: {{bucket_rows_max: 1}}\n"
    bench = Broken(store, 1_000, monkeypatch, one_by_one)
    assert bench.drain() == [1, 1]
    bench.on(270)
    assert bench.alternatives == []
    bench.on(60)
    assert sorted(bench.alternatives) == [[0], [1]]


def test_g23_the_loop_wakes_for_an_alternative(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Broken(store, 1, monkeypatch)
    bench.drain()
    assert bench.loop.wait_seconds == pytest.approx(300, abs=1)
