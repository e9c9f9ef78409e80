"""What the loop records of a firing, as it is read back: where its constituents came from, what its
entries did, and how many there were in an hour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.loop.test_counts import Saying
from tests.support.bench import BOOK, Bench
from tests.support.make import SECOND
from tidegate.engine.core import failpoints
from tidegate.engine.core.entries import Effect, Entry
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.values import ENGINE, FOREVER, Firings, Signal
from tidegate.engine.store import SqlStore

PAIR = """\
rulebook: loop
tables: {t: {path: /t, key: [id], start: earliest}, out: {path: /out}}
events: {row: {on: insert, table: t}, told: {signal: {id: bigint}}}
rules:
  pair: {on: row ; told, do: [{sql: INSERT INTO out SELECT id FROM event}]}
  each: {on: told}
"""


@pytest.fixture(autouse=True)
def disarm() -> Iterator[None]:
    yield
    failpoints.arm("")


def raised(bench: Bench, id: str, value: int, **more: Any) -> None:
    """A signal that waits for the next bucket."""
    signal = Signal(id, "told", {"id": value}, bench.clock.at + SECOND, **more)
    bench.store.of("loop", bench.epoch).signals.tell([signal])


def records(store: SqlStore, rule: str) -> list[dict[str, Any]]:
    """Of a rule's firings, in order."""
    ids = [f["firing_id"] for f in store.of("loop").firings.listed(rule=rule)]
    found = [store.of("loop").recorded.firing(one) for one in ids]
    return [one for one in found if one is not None]


def sources(record: dict[str, Any]) -> list[tuple[str, int | None, str | None, str | None]]:
    names = ("event", "version", "signal", "namespace")
    return [tuple(one[name] for name in names) for one in record["constituents"]]


def test_a_constituent_says_its_version_or_signal_though_it_was_carried(store: SqlStore) -> None:
    bench = Bench(store, 3, PAIR)
    bench.drain()
    bench.restart()  # what is carried comes from the store
    raised(bench, "k-19", 5)
    bench.clock.later(5)
    bench.drain()
    assert [sources(one) for one in records(store, "pair")] == [
        [("row", 2, None, None), ("told", None, "k-19", "client")]
    ]
    bench.feed.commits = 4
    raised(bench, "k-19", 7, namespace=ENGINE)
    bench.clock.later(5)
    bench.drain()
    assert [sources(one) for one in records(store, "each")] == [
        [("told", None, "k-19", "client")],
        [("told", None, "k-19", "engine")],
    ]


def test_of_simultaneous_signals_the_parameters_decide_before_the_ids(store: SqlStore) -> None:
    bench = Bench(store, 1, PAIR)
    bench.drain()
    for id, value in (("b", 1), ("a", 2)):
        raised(bench, id, value)
    bench.clock.later(5)
    bench.drain()
    assert [sources(one)[1] for one in records(store, "pair")] == [("told", None, "a", "client")]


def test_an_entry_says_when_it_began_and_what_it_wrote(store: SqlStore) -> None:
    bench = Bench(store, 1)
    failed = [SinkError("no")]
    bench.sink.fails = lambda entry: failed.pop() if failed and entry.rule == "a" else None
    bench.loop.runner.effect = lambda entry: Effect(40 + entry.number, 3)
    bench.drain()
    (waiting,) = records(store, "a")[0]["entries"]
    assert (waiting["version"], waiting["rows"], waiting["attempts"]) == (None, None, 1)
    assert waiting["begun_at"] <= waiting["settled_at"]
    entries = {}
    for _ in range(2):
        bench.clock.later(3_600)
        bench.loop.work()
        (record,) = records(store, "a")
        (entry,) = record["entries"]
        entries[entry["state"]] = entry
    done = entries["done"]
    assert (done["version"], done["rows"], done["attempts"]) == (40 + done["number"], 3, 2)
    assert done["begun_at"] < done["settled_at"]
    hours = int(done["settled_at"][11:13]) - int(done["begun_at"][11:13])
    assert hours == 1  # from its first attempt to the end of its second
    shown = store.of("loop").firings.entry(done["number"])
    assert shown is not None
    assert (shown["effect_version"], shown["rows_written"]) == (done["version"], 3)
    assert (shown["begun_at"], shown["settled_at"]) == (done["begun_at"], done["settled_at"])


@pytest.mark.parametrize(
    "point", ["commit.before", "commit.after", "settle.before", "settle.after"]
)
def test_what_is_recorded_is_whole_after_a_crash(store: SqlStore, point: str) -> None:
    bench = Bench(store, 4)
    bench.loop.runner.effect = lambda entry: Effect(entry.number, 1)
    failpoints.arm(f"{point}=raise")
    with pytest.raises(failpoints.FailpointError):
        bench.drain()
    failpoints.arm("")
    bench.restart()
    bench.loop.runner.effect = lambda entry: Effect(entry.number, 1)
    bench.drain()
    for rule in "ab":
        (hour,) = store.of("loop").hours.of_rule(rule, 0)
        assert hour["fired"] == store.of("loop").firings.totals(rule).fired == 4
        for record in records(store, rule):
            assert len(sources(record)) == 1
            for entry in record["entries"]:
                assert (entry["state"], entry["version"]) == ("done", entry["number"])
                assert entry["begun_at"] <= entry["settled_at"]


def test_hours_count_what_became_of_detections_when_it_did(store: SqlStore) -> None:
    text = BOOK.replace("a: {on: row,", "a: {on: row, coupling: detached, if: id > 0,")
    text = text.replace("b: {on: row,", "b: {on: row, cooldown: 1 h,")
    bench = Bench(store, 2, text)
    bench.conditions = Saying("no")
    bench.restart()
    bench.drain()
    bench.clock.later(3_600)
    bench.loop.work()
    bench.feed.commits = 3
    bench.drain()
    bench.loop.work()
    ledger = store.of("loop")
    first, second = ledger.hours.of_rule("b", 0)
    assert (first["fired"], first["damped"], second["fired"]) == (1, 1, 1)
    assert first["hour"].endswith(":00:00Z")
    failed = [hour["condition_failed"] for hour in ledger.hours.of_rule("a", 0)]
    assert sum(failed) == ledger.firings.totals("a").condition_failed == 3


def test_a_firing_dies_once_in_the_hours_whatever_becomes_of_it(store: SqlStore) -> None:
    one = "{sql: INSERT INTO out SELECT id FROM event}"
    text = BOOK.replace(f"do: [{one}]", f"do: [{one}, {one}]")
    bench = Bench(store, 2, text.replace("{on: row,", "{on: row, retry: {attempts: 1},"))
    run = bench.sink.run
    broken = [True]

    def failing(entry: Entry, firings: Firings) -> None:
        if entry.rule == "a" and broken:
            raise SinkError("[NO] no")
        run(entry, firings)

    bench.sink.run = failing  # type: ignore[method-assign]
    bench.drain()
    bench.loop.work()
    ledger = store.of("loop")
    assert [hour["dead"] for hour in ledger.hours.of_rule("a", 0)] == [2]
    assert [hour["dead"] for hour in ledger.hours.of_rule("b", 0)] == [0]
    assert ledger.firings.totals("a").dead == 2
    broken.clear()
    for number in [number for number, state in bench.states() if state == "dead"]:
        ledger.controls.ask("redrive", str(number))
    bench.drain()
    bench.loop.work()
    assert ledger.firings.totals("a").dead == 0
    assert [hour["dead"] for hour in ledger.hours.of_rule("a", 0)] == [2]


def test_g13_what_is_recorded_goes_with_its_firing_and_the_hours_with_history(
    store: SqlStore,
) -> None:
    bench = Bench(store, 2)
    bench.drain()
    ledger = store.of("loop", bench.epoch)
    (first, *_) = ledger.firings.listed()
    assert ledger.recorded.firing(first["firing_id"]) is not None
    ledger.retention.purge(FOREVER, 0, 1_000)
    assert ledger.recorded.firing(first["firing_id"]) is None
    assert ledger.hours.of_rule("a", 0)[0]["fired"] == 2
    ledger.retention.purge(FOREVER, bench.clock.at, 1_000)  # its hour is not over
    assert ledger.hours.of_rule("a", 0)[0]["fired"] == 2
    ledger.retention.purge(FOREVER, bench.clock.at + 3_600 * SECOND, 1_000)
    assert ledger.hours.of_rule("a", 0) == []


def test_each_node_says_what_it_carries(store: SqlStore) -> None:
    bench = Bench(store, 3, PAIR)
    bench.drain()
    carried = store.of("loop").recorded.carried_by_node()
    rules = {row["rule"]: row for row in store.of("loop").status.shown()["rules"]}
    assert sum(carried.values()) == rules["pair"]["carried_instances"] > 0
