"""Which histories a store knows, and how it takes a new id (G20)."""

from __future__ import annotations

import pytest

from tests.support import make
from tidegate.engine.core.failpoints import FailpointError, arm
from tidegate.engine.core.state import StoredBucket
from tidegate.engine.core.values import Carried
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import EngineError


def stored(store: SqlStore) -> int:
    """A bucket with three entries, one of which would raise signals; the lease's epoch."""
    epoch = store.of("bank").lease.acquire("me", 60)
    made = [
        make.entry(order=0, app_id="tidegate/x/bank/blocked", target_version=7),
        make.entry(order=1, app_id="tidegate/x/bank/blocked", target_version=9),
        make.entry(order=2, kind="signal", target=None),
    ]
    taken = StoredBucket(make.plan(), Carried(), {}, (make.firings(),), tuple(made))
    store.of(taken.plan.rulebook, epoch).buckets.commit(taken)
    return epoch


def test_g20_a_store_knows_its_entries_by_number_and_app_id(store: SqlStore) -> None:
    epoch = stored(store)
    assert store.app_ids([1, 2, 2, 9, *range(100, 3_000)]) == {
        1: "tidegate/x/bank/blocked",
        2: "tidegate/x/bank/blocked",
    }
    (first, *_) = store.of("bank").outbox.open_entries()
    store.of("bank", epoch).outbox.settle([make.outcome(first, "held", 1, fate="passed")])
    assert store.app_ids([1, 2]) == {1: "", 2: "tidegate/x/bank/blocked"}
    assert store.of("bank").histories.target_version("a") == 9
    assert store.of("bank").histories.target_version("b") is None
    assert store.of("doors").histories.target_version("a") is None


def test_g20_adopting_gives_a_new_id_and_keeps_the_old_one_as_known(store: SqlStore) -> None:
    epoch, before = stored(store), store.id
    store.of("bank").signals.raise_signal(make.signal())
    assert store.adopt("bank", epoch, ["other"], ["accounts"]) == (0, 0)
    assert store.id != before
    assert SqlStore(store.database).id == store.id
    assert store.of("bank").histories.stores() == {before, "other"}
    assert store.of("doors").histories.stores() == set()
    assert [(c.kind, c.subject, c.version) for c in store.of("bank").controls.pending()] == [
        ("reset", "accounts", None)
    ]
    assert store.last_entry() == 3
    assert [entry.number for entry in store.of("bank").outbox.open_entries()] == [1, 2, 3]
    assert [signal.id for signal in make.unplaced(store)] == ["s1"]


def test_g20_signals_can_be_passed_over_and_stay_known(store: SqlStore) -> None:
    epoch = stored(store)
    store.of("bank").signals.raise_signal(make.signal())
    assert store.adopt("bank", epoch, [], pass_signals=True) == (1, 1)
    assert make.unplaced(store) == ()
    assert store.of("bank").signals.raise_signal(make.signal()) is False
    assert [entry.number for entry in store.of("bank").outbox.open_entries()] == [1, 2]
    skipped = store.of("bank").outbox.entry(3)
    assert skipped is not None
    assert skipped.state == "skipped"


def test_g21_a_store_is_adopted_by_the_lease_holder_while_nothing_else_runs(
    store: SqlStore,
) -> None:
    epoch, before = stored(store), store.id
    store.of("doors").lease.acquire("somebody", 60)
    with pytest.raises(EngineError, match="rulebook 'doors' of the same store is run by") as caught:
        store.adopt("bank", epoch, ["other"], ["accounts"], pass_signals=True)
    assert caught.value.code == "lease-held"
    with pytest.raises(EngineError) as lost:
        store.adopt("bank", epoch - 1, ["other"])
    assert lost.value.code == "lease-lost"
    assert (store.id, store.of("bank").histories.stores()) == (before, frozenset())
    assert store.of("bank").controls.pending() == ()


@pytest.mark.parametrize("how", ["raise", "late"])
def test_g20_an_adoption_that_fails_is_whole_or_nothing(store: SqlStore, how: str) -> None:
    epoch, before = store.of("bank").lease.acquire("one", 60), store.id
    arm(f"adopt.before={how}")
    with pytest.raises(FailpointError):
        store.adopt("bank", epoch, ["other"])
    known = {before, "other"} if how == "late" else set()
    assert store.of("bank").histories.stores() == known
    store.adopt("bank", epoch, ["other"])
    assert {before, "other"} <= store.of("bank").histories.stores()
