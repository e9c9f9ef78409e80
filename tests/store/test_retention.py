"""What a store forgets, and what never (G13)."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa

from tests.support import make
from tidegate.engine.core.values import Rejected
from tidegate.engine.store import SqlStore
from tidegate.engine.store import tables as t
from tidegate.engine.store.database import Database

LATER = 2**60  # than all clocks
GROWING = (
    t.buckets,
    t.firings,
    t.firing_ids,
    t.firing_runs,
    t.outbox,
    t.signals,
    t.rejected,
    t.controls,
)


@pytest.fixture
def epoch(store: SqlStore) -> int:
    return store.of("bank").lease.acquire("one", 60)


def rows(url: str) -> dict[str, int]:
    """How many rows the tables hold that every bucket adds to."""
    database = Database(url)
    with database.read() as connection:
        found = {
            table.name: connection.execute(
                sa.select(sa.func.count()).select_from(table)
            ).scalar_one()
            for table in GROWING
        }
    database.close()
    return found


def everything(store: SqlStore, epoch: int, bucket: int, state: str | None = "done") -> None:
    """A bucket with a row in each table; its entry ends in a state."""
    store.of("bank").signals.raise_signal(make.signal(f"s{bucket}", at=make.BEGIN + bucket))
    store.of("bank").controls.ask("reset", "accounts")
    store.of("bank").controls.ask("skip", "99")
    reset, skip = store.of("bank").controls.pending()
    store.of("bank", epoch).controls.answer(skip.id, "no such entry")
    placed = replace(make.signal(f"s{bucket}"), instant=make.BEGIN + 5)
    (entry,) = make.commit(
        store,
        epoch,
        make.plan(bucket, signals=(placed,), controls=(reset.id,)),
        fired=[make.firings(bucket=bucket)],
        entries=[make.entry()],
        rejected=[Rejected("withdrawal", "transactions", "no time", {"id": 4})],
    )
    if state is not None:
        store.of("bank", epoch).outbox.settle([make.outcome(entry, state, 1)])


def test_g13_a_store_does_not_grow_for_ever(url: str, store: SqlStore, epoch: int) -> None:
    for bucket in range(1, 41):
        everything(store, epoch, bucket)
    store.of("bank").signals.raise_signal(make.signal("waits"))
    store.of("bank").controls.ask("reset", "accounts")
    calls = 0
    while make.purge(store, epoch, LATER, LATER, rows_max=7) == 7:
        calls += 1
    assert calls >= 40 * 6 // 7  # small steps
    kept = {"buckets": 1, "signals": 1, "controls": 1}
    assert rows(url) == {table.name: kept.get(table.name, 0) for table in GROWING}
    assert store.of("bank").buckets.load().bucket == 40
    assert store.of("bank").status.shown()["fired"] == 80  # counts what is forgotten
    assert [signal.id for signal in make.unplaced(store)] == ["waits"]
    assert len(store.of("bank").controls.pending()) == 1
    make.commit(store, epoch, make.plan(41))


@pytest.mark.parametrize("state", [None, "held", "dead"])
def test_g13_what_is_not_finished_keeps_its_firings_and_bucket(
    url: str, store: SqlStore, epoch: int, state: str | None
) -> None:
    everything(store, epoch, 1, state)
    everything(store, epoch, 2)
    everything(store, epoch, 3)
    store.of("bank", epoch).outbox.settle([make.outcome(make.entry("b", number=99), "done", 1)])
    assert make.purge(store, epoch, LATER, LATER, rows_max=100) < 100
    assert [firing["bucket"] for firing in store.of("bank").firings.listed()] == [1, 1]
    assert len(store.of("bank").outbox.firings(1, "blocked")) == 2
    assert make.find_firing(store, "bank", make.hex_ids(make.firings(bucket=1))[0]) == (
        1,
        "blocked",
    )
    assert make.find_firing(store, "bank", make.hex_ids(make.firings(bucket=2))[0]) is None
    assert (rows(url)["buckets"], rows(url)["outbox"]) == (2, 1)
    entry = store.of("bank").outbox.entry(1)
    assert entry is not None
    for successor in store.of("bank", epoch).outbox.settle(
        [make.outcome(entry, "redriven", 1, successors=(make.entry(place=1),))]
    ):
        assert make.purge(store, epoch, LATER, LATER) == 0  # it needs the firings still
        store.of("bank", epoch).outbox.settle([make.outcome(successor, "skipped", 0)])
    assert make.purge(store, epoch, LATER, LATER) > 0
    assert (rows(url)["buckets"], rows(url)["outbox"]) == (1, 0)


def test_g13_firings_go_rule_by_rule_and_by_the_age_of_their_bucket(
    store: SqlStore, epoch: int
) -> None:
    for bucket in (1, 2):
        entries = [make.entry(rule, order) for order, rule in enumerate("ab")]
        fired = [make.firings(rule, bucket=bucket) for rule in "abc"]
        done, _ = make.commit(store, epoch, make.plan(bucket), fired=fired, entries=entries)
        store.of("bank", epoch).outbox.settle([make.outcome(done, "done", 1)])
    assert make.purge(store, epoch, firings=make.plan(1).now) == 0
    assert make.purge(store, epoch, firings=make.plan(2).now) == 3  # an entry, firings of a and c
    left = [(firing["bucket"], firing["rule"]) for firing in store.of("bank").firings.listed()]
    assert sorted(set(left)) == [(1, "b"), (2, "a"), (2, "b"), (2, "c")]


def test_history_goes_by_its_own_age(url: str, store: SqlStore, epoch: int) -> None:
    for bucket in (1, 2):
        everything(store, epoch, bucket)
    make.purge(store, epoch, history=make.plan(2).now)
    found = rows(url)
    assert (found["rejected"], found["signals"]) == (1, 1)
    assert (found["buckets"], found["firings"], found["outbox"]) == (2, 2, 2)
    assert store.of("bank").rejections.newest(9, whole=False)[0]["bucket"] == 2


def test_g04_an_id_is_known_as_long_as_history_is_kept(store: SqlStore, epoch: int) -> None:
    everything(store, epoch, 1)
    everything(store, epoch, 2)
    make.purge(store, epoch, LATER, make.plan(2).now)
    again = make.signal("s2", at=make.BEGIN + make.HOUR)
    assert not store.of("bank").signals.raise_signal(again)
    assert store.of("bank").signals.raise_signal(make.signal("s1"))  # another occurrence by now


def test_another_rulebook_keeps_its_own(store: SqlStore, epoch: int) -> None:
    other = store.of("stock").lease.acquire("one", 60)
    plan = make.plan(rulebook="stock")
    make.commit(store, other, plan, fired=[make.firings()])
    make.commit(store, other, make.plan(2, rulebook="stock"))
    everything(store, epoch, 1)
    make.purge(store, epoch, LATER, LATER)
    assert len(list(store.of("stock").firings.listed())) == 2
    assert make.find_firing(store, "stock", make.hex_ids(make.firings())[0]) == (1, "blocked")


def test_large_firings_go_fewer_at_a_time(store: SqlStore, epoch: int) -> None:
    for bucket in (1, 2, 3):
        make.commit(store, epoch, make.plan(bucket), fired=[make.firings("a", 5_000, bucket)])
    assert make.purge(store, epoch, LATER, rows_max=10) == 10
    assert {firing["bucket"] for firing in store.of("bank").firings.listed()} == {2, 3}
