"""What was recorded of firings, entries, requests and hours is read back from both databases."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tests.support import make
from tidegate.engine.core.entries import Effect
from tidegate.engine.core.values import Carried
from tidegate.engine.store import SqlStore
from tidegate.engine.store.holder import this_user


@pytest.fixture
def url(store_url: str) -> str:
    """Both databases, in the short suite, too."""
    return store_url


@pytest.fixture
def epoch(store: SqlStore) -> int:
    return store.of("bank").lease.acquire("one", 60)


SOURCES = pa.table(
    {
        "version": pa.array([7, None, 8, None], pa.int64()),
        "signal": pa.array([None, "client/a/b", None, "engine/9f-1"]),
    }
)


def test_a_firing_says_where_its_constituents_came_from(store: SqlStore, epoch: int) -> None:
    fired = replace(make.firings(), sources=SOURCES)
    first, second = make.hex_ids(fired)
    some = make.entry(order=1, firing_ids=(second,))
    make.commit(store, epoch, make.plan(), fired=[fired], entries=[make.entry(), some])
    record = store.of("bank").recorded.firing(second)
    assert record is not None
    assert record["constituents"] == [
        {
            "event": "withdrawal",
            "time": "2026-03-02T09:01:30Z",
            "version": 8,
            "signal": None,
            "namespace": None,
        },
        {
            "event": "transfer",
            "time": "2026-03-02T09:02:00Z",
            "version": None,
            "signal": "9f-1",
            "namespace": "engine",
        },
    ]
    assert [entry["number"] for entry in record["entries"]] == [1, 2]
    record = store.of("bank").recorded.firing(first)
    assert record is not None
    assert [one["signal"] for one in record["constituents"]] == [None, "a/b"]
    assert [entry["number"] for entry in record["entries"]] == [1]
    assert store.of("bank").recorded.firing("0" * 32) is None


def test_what_runs_an_entry_sees_nothing_of_the_sources(store: SqlStore, epoch: int) -> None:
    fired = replace(make.firings(), sources=SOURCES)
    make.commit(store, epoch, make.plan(), fired=[fired])
    found = store.of("bank").outbox.firings(1, "blocked")
    assert found.relation.equals(fired.relation)
    assert found.sources == SOURCES
    (listed, _) = store.of("bank").firings.listed()
    assert listed["constituents"][1].keys() == {"event", "time", "account_id"}


def test_an_entry_begins_with_its_first_attempt(store: SqlStore, epoch: int) -> None:
    fired = make.firings()
    (entry,) = make.commit(store, epoch, make.plan(), fired=[fired], entries=[make.entry()])
    at = make.BEGIN
    failed = make.outcome(entry, "pending", 1, "no", begun_at=at, settled_at=at + 5)
    store.of("bank", epoch).outbox.settle([failed])
    more = {"begun_at": at + 7, "settled_at": at + make.SECOND, "effect": Effect(12, None)}
    store.of("bank", epoch).outbox.settle([make.outcome(entry, "done", 2, **more)])
    late = make.outcome(entry, "done", 2, settled_at=at + make.HOUR, effect=Effect(13, 1))
    store.of("bank", epoch).outbox.settle([late])  # its answer was lost: nothing changes
    record = store.of("bank").recorded.firing(make.hex_ids(fired)[0])
    assert record is not None
    (shown,) = record["entries"]
    assert shown.pop("stored_at") > "2026"
    assert shown == {
        "number": 1,
        "kind": "sql",
        "state": "done",
        "fate": None,
        "attempts": 2,
        "error": None,
        "alternative": False,
        "begun_at": "2026-03-02T09:00:00Z",
        "settled_at": "2026-03-02T09:00:01Z",
        "table": "a",
        "version": 12,
        "rows": None,
    }


def test_a_request_says_who_asked(store: SqlStore, epoch: int) -> None:
    store.of("bank").controls.ask("reset", "accounts")
    store.of("bank").controls.ask("enable", "b", asked_by="ada")
    fired = [make.firings()]
    entry = make.entry(kind="switch", text='{"kind": "disable", "rule": "b"}')
    (entry,) = make.commit(store, epoch, make.plan(), fired=fired, entries=[entry])
    asks = ("disable", "b")
    store.of("bank", epoch).outbox.settle([make.outcome(entry, "done", 1, asks=asks)])
    said = [this_user(), "ada", "rule blocked, entry 1"]
    assert [one.asked_by for one in store.of("bank").controls.pending()] == said
    shown = store.of("bank").status.shown()["asked_for"]
    assert [one["asked_by"] for one in shown] == said


def test_hours_are_added_up_and_told_for_a_day(store: SqlStore, epoch: int) -> None:
    for bucket in (1, 2):
        plan = make.plan(bucket, now=store.wall())
        fired = [make.firings(rule, bucket=bucket) for rule in ("blocked", "calm")]
        digests = {"blocked": "1", "calm": "1"}
        activations = dict.fromkeys(digests, make.BEGIN) if bucket == 1 else {}
        plan = replace(plan, activations=activations)
        make.commit(store, epoch, plan, fired=fired, digests=digests)
    status = store.of("bank").status.shown()["rules"]
    day = {"fired": 4, "condition_failed": 0, "damped": 0, "dead": 0}
    assert [row["last_day"] for row in status] == [day, day]
    hours = store.of("bank").hours.of_rule("calm", make.BEGIN)
    assert sum(hour["fired"] for hour in hours) == 4


def test_a_day_is_this_hour_and_those_before_it(store: SqlStore, epoch: int) -> None:
    plan = make.plan(now=store.wall() - 24 * make.HOUR)
    plan = replace(plan, activations={"blocked": make.BEGIN})
    make.commit(store, epoch, plan, fired=[make.firings()], digests={"blocked": "1"})
    (row,) = store.of("bank").status.shown()["rules"]
    assert row["last_day"]["fired"] == 0
    (hour,) = store.of("bank").hours.of_rule("blocked", plan.now)
    assert hour["fired"] == 2


def test_what_is_stored_dead_dies_in_its_hour(store: SqlStore, epoch: int) -> None:
    fired = make.firings(condition=["dead", "dead"])
    entry = make.entry(kind="condition", state="dead", error="no")
    make.commit(store, epoch, make.plan(), fired=[fired], entries=[entry])
    (hour,) = store.of("bank").hours.of_rule("blocked", 0)
    assert [hour[name] for name in ("fired", "condition_failed", "damped", "dead")] == [0, 0, 0, 2]


def test_an_entry_without_ids_is_for_what_is_acted_on_and_a_condition_for_all(
    store: SqlStore, epoch: int
) -> None:
    fired = make.firings(condition=["held", "failed"])
    entries = [make.entry(kind="condition"), make.entry(order=1)]
    make.commit(store, epoch, make.plan(), fired=[fired], entries=entries)
    for id, numbers in zip(make.hex_ids(fired), ([1, 2], [1]), strict=True):
        record = store.of("bank").recorded.firing(id)
        assert record is not None
        assert [entry["number"] for entry in record["entries"]] == numbers


def test_a_node_says_what_all_its_parts_carry(store: SqlStore, epoch: int) -> None:
    tables = {
        name: pa.table({"n": pa.nulls(rows)})
        for name, rows in (("node:1f/0", 3), ("node:1f/every", 2), ("node:2e/0", 1), ("occ:a/0", 9))
    }
    carried = Carried(tables, frozenset(tables))
    make.commit(store, epoch, make.plan(), carried=carried)
    assert store.of("bank").recorded.carried_by_node() == {"1f": 5, "2e": 1}
