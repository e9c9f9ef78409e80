"""Signals in the loop: raised one by one, and by rows of a table; what their `where` says. Commits
as events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from tests.golden.load import micros
from tests.reference.strategies import SECOND
from tests.support.analysts import EveryIdAnalyst
from tests.support.bench import Bench
from tests.support.live import Live, RowsFeed
from tests.support.make import BEGIN
from tidegate import rules
from tidegate.engine.core.entries import Entry
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.values import ENGINE, Firings, Reading, Signal
from tidegate.engine.store import SqlStore

NINE = micros("2026-03-02T09:00")
BOOK = """\
rulebook: raised
tables: {a: {path: /a}}
events:
  sent: {signal: {v: bigint}, from_table: a, where: v > 0}
  asked: {signal: {v: bigint}, where: v % 3 <=> 1}
  load: {on: transaction, table: a}
  odd: {on: transaction, table: a, where: version % 3 <=> 1}
  row: {on: insert, table: a}
rules:
  each: {on: sent}
  both: {on: sent ; sent}
  some: {on: asked}
  gate: {on: "A*(begin_of load, row, end_of load)"}
  few: {on: begin_of odd or odd}
"""


class AskedFeed(RowsFeed):
    """`x % 3 <=> 1` of Spark, which raises on what three divides."""

    def decide(
        self,
        rows: pa.Table,
        where: Mapping[str, str],
        source: str,  # noqa: ARG002
    ) -> pa.Table:
        assert rows.num_rows
        ((name, text),) = where.items()
        numbers = rows.column(text.split()[0]).to_pylist()
        return pa.table({name: [None if n % 3 == 0 else n % 3 == 1 for n in numbers]})


def found(live: Live, rule: str) -> list[tuple[str, list[Any]]]:
    return [
        (f["end"][17:], [c.get("v") for c in f["constituents"]])
        for f in live.found()
        if f["rule"] == rule
    ]


def test_g04_rows_and_raised_signals_are_one_event_type_in_order_of_time(store: SqlStore) -> None:
    feed = AskedFeed()
    live = Live(store, rules.load(BOOK), "r", NINE, feed)
    feed.written["a"] = [(NINE + 2 * SECOND, [(2, 0), (0, 0)]), (NINE + 5 * SECOND, [(5, 0)])]
    raised = [("sent", NINE + n * SECOND, {"v": v}) for n, v in ((1, 1), (3, 3), (4, -4), (6, 6))]
    live.signal(raised)
    live.drain(NINE + 10 * SECOND)
    expected = [("01Z", [1]), ("02Z", [2]), ("03Z", [3]), ("05Z", [5]), ("06Z", [6])]
    assert found(live, "each") == expected
    assert [values for _, values in found(live, "both")] == [[1, 2], [2, 3], [3, 5], [5, 6]]


def test_g09_signals_of_before_the_first_start_stand_at_their_own_instants(store: SqlStore) -> None:
    text = """\
rulebook: loop
tables: {t: {path: /t}}
events: {row: {on: insert, table: t}, told: {signal: {id: bigint}}}
rules: {each: {on: told}, pair: {on: told ; told within 3 s}}
"""
    bench = Bench(store, commits=0, text=text)
    for second in (2, 4, 60):
        instant = bench.clock.at - 100 * SECOND + second * SECOND
        store.of("loop").signals.raise_signal(Signal(f"s{second}", "told", {"id": second}, instant))
    bench.drain()
    fired = [(f["rule"], f["end"][17:19]) for f in store.of("loop").firings.listed()]
    assert fired == [("each", "22"), ("each", "24"), ("pair", "24"), ("each", "20")]


def test_g25_a_where_that_spark_decides_takes_and_rejects_signals(store: SqlStore) -> None:
    live = Live(store, rules.load(BOOK), "w", NINE, AskedFeed())
    wrong = [("asked", NINE + SECOND, {"v": "text"})]
    live.signal([*wrong, *(("asked", NINE + n * SECOND, {"v": n}) for n in range(1, 8))])
    own = Signal("s4", "asked", {"v": 9}, NINE + 8 * SECOND, namespace=ENGINE)
    live.loop.ports.ledger.signals.tell([own])
    live.drain(NINE + 10 * SECOND)
    assert found(live, "some") == [("01Z", [1]), ("04Z", [4]), ("07Z", [7])]
    rejected = [
        (r["source"], r["reason"][:8]) for r in store.of("w").rejections.newest(10, whole=True)
    ]
    assert sorted(rejected) == [
        ("engine signal s4", "`where: "),
        ("signal s1", "field `v"),
        ("signal s4", "`where: "),
        ("signal s7", "`where: "),
    ]


def test_s10_the_rows_of_a_commit_lie_between_its_edges(store: SqlStore) -> None:
    """A commit whose `where` raises is rejected once, though its beginning is an event, too."""
    feed = AskedFeed()
    live = Live(store, rules.load(BOOK), "t", NINE, feed)
    feed.written["a"] = [(NINE + n * SECOND, [(n, 0), (n, 0)][:n]) for n in range(3)]
    live.drain(NINE + 10 * SECOND)
    assert found(live, "gate") == [
        ("00.000001Z", []),
        ("01.000001Z", [1]),
        ("02.000001Z", [2, 2]),
    ]
    assert found(live, "few") == [("00.999999Z", [None]), ("01.000001Z", [None])]
    assert [r["source"] for r in store.of("t").rejections.newest(10, whole=True)] == ["a@0"]


def test_a_raised_signal_whose_id_is_taken_is_dead_and_the_rule_goes_on(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}}
events: {row: {on: insert, table: t}, told: {signal: {id: bigint}}}
rules: {each: {on: row, do: [{signal: {told: {id: id}}}]}}
"""
    monkeypatch.setattr(EveryIdAnalyst, "fields", lambda *_: Reading(frozenset({"id"})))
    bench = Bench(store, commits=1, text=text)
    later = iter([SinkError("[NO] not yet")])

    def fields(_: Entry, firings: Firings) -> pa.Table:
        for error in later:
            raise error
        return pa.table({"firing_id": firings.hex_ids(), "id": firings.relation["id"]})

    monkeypatch.setattr(bench.sink, "fields", fields)
    bench.drain()
    (fired,) = store.of("loop").firings.listed()
    own = Signal(f"{fired['firing_id']}-0", "told", {"id": 9}, BEGIN, namespace=ENGINE)
    bench.ledger.signals.tell([own])
    for _ in range(5):
        bench.clock.later(60)
        bench.drain()
    assert bench.states()[:1] == [(1, "dead")]
    bench.feed.commits = 2
    bench.drain()
    states = sorted(f["entries"][0]["state"] for f in store.of("loop").firings.listed())
    assert states == ["dead", "done"]
