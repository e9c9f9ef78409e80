"""What ticks sample: once for each version of a table, as of the tick (S11)."""

# ruff: noqa: ARG002 - fakes take what the ports give

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from tests.support.bench import Bench, NoConditions
from tests.support.make import BEGIN, SECOND
from tests.support.memory import MemoryFeed
from tidegate.engine.core.values import Failure, Signal
from tidegate.engine.store import SqlStore
from tidegate.engine.store.buckets import Buckets
from tidegate.rules.errors import EngineError

BOOK = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}, opened: {signal: {}}, closed: {signal: {}}}
samples: {newest: SELECT max(id) FROM t}
rules:
  a: {on: "P*(opened, [1500 ms]: newest, closed)"}
  b: {on: "P(opened, [3 s]: 'SELECT max(id) FROM t', closed)"}
"""


class Newest(NoConditions):
    """The newest id of a version of t is its number."""

    def __init__(self, fails: int = 0, *, lasting: bool = False) -> None:
        self.asked: list[int] = []
        self.fails = fails
        self.lasting = lasting

    def sample(self, text: str, pinned: Mapping[str, int]) -> pa.Scalar | Failure:
        if self.fails:
            self.fails -= 1
            return Failure("a sample failed: [TABLE_GONE]", lasting=self.lasting)
        self.asked.append(pinned["t"])
        return pa.scalar(pinned["t"])


def run(
    store: SqlStore, conditions: Newest, after: int = SECOND // 10
) -> dict[str, list[list[int | None]]]:
    bench = Bench(store, commits=0, text=BOOK)
    bench.conditions = conditions
    bench.clock.at = BEGIN - SECOND
    bench.restart()
    bench.drain()
    for event, second in (("opened", 0), ("closed", 7)):
        at = BEGIN + second * SECOND + after
        bench.store.of("loop").signals.raise_signal(Signal(event, event, {}, at))
    bench.feed.commits = 6  # at 0, 1, .. 5 s
    bench.clock.at = BEGIN + 3 * SECOND
    bench.drain()
    bench.restart()
    bench.clock.at = BEGIN + 60 * SECOND
    bench.drain()
    found: dict[str, list[list[int | None]]] = {}
    for firing in store.of("loop").firings.listed():
        ticks = [tick.get("sample") for tick in firing["constituents"]]
        found.setdefault(firing["rule"], []).append(ticks)
    return found


def test_s11_a_tick_samples_what_its_table_was_then(store: SqlStore) -> None:
    """Ticks at 1.6, 3.1, 4.6, 6.1 s, and at 3.1, 6.1 s."""
    conditions = Newest()
    assert run(store, conditions) == {"a": [[1, 3, 4, 5]], "b": [[3], [5]]}
    assert conditions.asked == [1, 3, 4, 5]  # in one bucket: each version once


def test_s11_a_tick_at_the_instant_of_a_commit_sees_it(store: SqlStore) -> None:
    """Ticks at 2, 3.5, 5, 6.5 s, and at 3.5, 6.5 s."""
    assert run(store, Newest(), SECOND // 2) == {"a": [[2, 3, 5, 5]], "b": [[3], [5]]}


def test_g13_a_sample_whose_failure_lasts_is_not_asked_again(store: SqlStore) -> None:
    conditions = Newest(2, lasting=True)
    run(store, conditions)
    assert [entry.state for entry in store.of("loop").rule_states.obstacles()] == ["dead", "dead"]
    assert conditions.fails == 0


@pytest.mark.parametrize(("fails", "dead"), [(2, 0), (99, 3)])
def test_g13_a_sample_that_fails_for_good_makes_its_firings_dead(
    store: SqlStore, fails: int, dead: int
) -> None:
    """The one of a; the two of b, which see two versions."""
    run(store, Newest(fails))
    states = [entry.state for entry in store.of("loop").rule_states.obstacles()]
    assert states.count("dead") == dead


class Vacuumed(Newest):
    """Version 3 is not there any more."""

    def sample(self, text: str, pinned: Mapping[str, int]) -> pa.Scalar | Failure:
        if pinned["t"] == 3:
            return Failure("a sample failed: version 3 is gone", lasting=True)
        return super().sample(text, pinned)


def test_g25_a_sample_of_a_version_that_is_gone_kills_only_what_shows_it(store: SqlStore) -> None:
    assert run(store, Vacuumed()) == {"a": [[1, None, 4, 5]], "b": [[None], [5]]}
    found = [
        (f["rule"], f["condition"], len(f["entries"])) for f in store.of("loop").firings.listed()
    ]
    assert sorted(found) == [("a", "dead", 1), ("b", "dead", 1), ("b", "none", 0)]


def test_g13_a_sample_of_a_table_that_is_gone_makes_its_firings_dead(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> int:
        raise EngineError("table-missing", "table `t` is not there", "make it")

    monkeypatch.setattr(MemoryFeed, "version_at", gone)
    monkeypatch.setattr(Buckets, "version_at", lambda *_: None)
    run(store, Newest())
    assert [entry.state for entry in store.of("loop").rule_states.obstacles()] == ["dead"]
