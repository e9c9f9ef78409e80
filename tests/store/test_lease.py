"""One engine a rulebook (G21), shown with two of them and a clock set by hand."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import pytest

from tests.support import make
from tests.support.holders import ended_holder
from tidegate.engine.core.failpoints import arm
from tidegate.engine.core.ports import OutageError
from tidegate.engine.store import LeaseKeeper, SqlStore, open_store
from tidegate.engine.store.holder import this_holder
from tidegate.rules.errors import EngineError


@pytest.fixture
def url(store_url: str) -> str:
    """Both databases, in the short suite, too."""
    return store_url


@dataclass
class Hand:
    """A clock that stands until it is set."""

    micros: int = make.BEGIN

    def __call__(self, _connection: object) -> int:
        return self.micros


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Hand:
    hand = Hand()
    monkeypatch.setattr("tidegate.engine.store.lease.server_now", hand)
    return hand


def test_g21_a_second_holder_is_refused_before_the_deadline(store: SqlStore, clock: Hand) -> None:
    assert store.of("bank").lease.acquire("one", 30) == 1
    clock.micros += 30 * make.SECOND - 1
    with pytest.raises(EngineError, match=r"run by one .*until 2026-03-02 09:00:30 UTC") as caught:
        store.of("bank").lease.acquire("two", 30)
    assert caught.value.code == "lease-held"
    assert "stop that engine" in caught.value.hint
    store.of("bank", 1).lease.renew(30)  # the first still has it


@pytest.mark.parametrize("late_seconds", [0, 1])
def test_g21_a_second_holder_has_it_from_the_deadline_on(
    store: SqlStore, clock: Hand, late_seconds: int
) -> None:
    store.of("bank").lease.acquire("one", 30)
    assert store.of("bank").lease.holder() == "one"
    clock.micros += (30 + late_seconds) * make.SECOND
    assert store.of("bank").lease.holder() is None
    assert store.of("bank").lease.acquire("two", 30) == 2
    assert store.of("bank").lease.holder() == "two"
    with pytest.raises(EngineError, match="run by two now; this engine's epoch 1 is over"):
        store.of("bank", 1).lease.renew(30)
    with pytest.raises(EngineError) as caught:
        store.of("bank", 1).lease.check()
    assert caught.value.code == "lease-lost"
    store.of("bank", 2).lease.check()


def test_g21_renewal_moves_the_deadline(store: SqlStore, clock: Hand) -> None:
    store.of("bank").lease.acquire("one", 30)
    clock.micros += 20 * make.SECOND
    store.of("bank", 1).lease.renew(30)
    clock.micros += 20 * make.SECOND
    with pytest.raises(EngineError, match="09:00:50"):
        store.of("bank").lease.acquire("two", 30)


def test_a_lease_late_but_not_taken_can_still_be_renewed(store: SqlStore, clock: Hand) -> None:
    store.of("bank").lease.acquire("one", 30)
    clock.micros += 31 * make.SECOND
    store.of("bank", 1).lease.renew(30)
    with pytest.raises(EngineError, match="is run by one "):
        store.of("bank").lease.acquire("two", 30)


def test_a_released_lease_is_free_at_once_and_epochs_go_on(store: SqlStore) -> None:
    store.of("bank").lease.acquire("one", 30)
    store.of("bank", 1).lease.release()
    assert store.of("bank").lease.acquire("two", 30) == 2
    store.of("bank", 1).lease.release()  # a stale holder gives nothing back
    with pytest.raises(EngineError, match="is run by two "):
        store.of("bank").lease.acquire("three", 30)


def test_g07_leases_of_rulebooks_do_not_touch(store: SqlStore) -> None:
    store.of("bank").lease.acquire("one", 30)
    assert store.of("stock").lease.acquire("two", 30) == 1


def test_the_lease_of_a_process_that_ended_need_not_be_waited_for(store: SqlStore) -> None:
    store.of("bank").lease.acquire(ended_holder(), 3600)
    assert store.of("bank").lease.acquire(this_holder(), 30) == 2
    with pytest.raises(EngineError, match=f"is run by {this_holder().rpartition('/')[0]}"):
        store.of("bank").lease.acquire(this_holder(), 30)  # this process is alive


def test_a_process_of_another_machine_is_taken_to_live(store: SqlStore) -> None:
    store.of("bank").lease.acquire("elsewhere/999999/ab", 3600)
    with pytest.raises(EngineError, match="elsewhere/999999/ab"):
        store.of("bank").lease.acquire(this_holder(), 30)


def test_g21_of_many_that_ask_at_once_one_gets_it(url: str, store: SqlStore) -> None:
    got: list[int] = []
    refused: list[str] = []

    def ask(n: int) -> None:
        with open_store(url, create=False) as own:
            try:
                got.append(own.of("bank").lease.acquire(f"holder-{n}", 30))
            except EngineError as error:
                refused.append(error.code)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [1]
    assert refused == ["lease-held"] * 5
    store.of("bank", 1).lease.check()


def test_the_keeper_keeps_the_lease_past_its_time_and_gives_it_back(sqlite_url: str) -> None:
    with open_store(sqlite_url, create=True) as store:
        with LeaseKeeper(store, "bank", 1) as keeper:
            assert not threading.Event().wait(1.5)
            keeper.check()
            with pytest.raises(EngineError, match=f"is run by {this_holder().rpartition('/')[0]}"):
                store.of("bank").lease.acquire("two", 1)
        assert store.of("bank").lease.acquire("two", 1) == keeper.epoch + 1


def test_g21_the_keeper_says_when_another_has_the_lease(sqlite_url: str) -> None:
    told = threading.Event()
    with open_store(sqlite_url, create=True) as store:
        with LeaseKeeper(store, "bank", 1, on_loss=lambda _: told.set()) as keeper:
            store.of("bank", keeper.epoch).lease.release()
            stolen = store.of("bank").lease.acquire("two", 30)
            assert told.wait(5)
            with pytest.raises(EngineError, match="run by two now"):
                keeper.check()
        store.of("bank", stolen).lease.check()  # the loser's exit takes nothing from the new holder


class Away:
    """A store that answers again once `back` is set; another engine may have the lease by then."""

    def __init__(self) -> None:
        self.lease = self
        self.back, self.taken = threading.Event(), False
        self.renewed = threading.Event()
        self.seconds = 0

    def of(self, *_: object) -> Away:
        return self

    def acquire(self, *_: object) -> int:
        return 1

    def release(self, *_: object) -> None: ...

    def renew(self, seconds: int, _activity: object) -> None:
        self.seconds = seconds
        self.check()
        self.renewed.set()

    def check(self, *_: object) -> None:
        if not self.back.is_set():
            raise OutageError("store-unreachable", "no answer", "look at the server")
        if self.taken:
            raise EngineError("lease-lost", "another engine has it")


@pytest.mark.parametrize("taken", [False, True])
def test_g21_a_lease_that_ran_out_unrenewed_stops_the_work_and_is_asked_for(taken: bool) -> None:
    """While the store is away, nobody knows whether the lease is ours: what runs is cancelled, and
    nothing begins. The store says what became of it."""
    store, told = Away(), threading.Event()
    with LeaseKeeper(store, "bank", 1, on_loss=lambda _: told.set()) as keeper:  # type: ignore[arg-type]
        assert told.wait(10)
        with pytest.raises(OutageError, match="no answer"):
            keeper.check()
        store.taken = taken
        store.back.set()
        if taken:
            with pytest.raises(EngineError, match="another engine has it"):
                keeper.check()
        else:
            assert store.renewed.wait(10)
            keeper.check()
            keeper.seconds = 2  # the rulebook has another lease_seconds now
            for _ in range(2):
                store.renewed.clear()
                assert store.renewed.wait(10)
            assert store.seconds == 2


def test_g21_a_bug_in_renewing_does_not_end_the_keeper(sqlite_url: str) -> None:
    with open_store(sqlite_url, create=True) as store:
        arm("lease.renewed=raise")
        with LeaseKeeper(store, "bank", 1) as keeper:
            assert not threading.Event().wait(1.5)
            keeper.check()
            with pytest.raises(EngineError, match="is run by"):
                store.of("bank").lease.acquire("two", 1)
        arm("")


def test_g03_the_store_has_a_clock(store: SqlStore) -> None:
    assert abs(store.wall() - time.time_ns() // 1000) < make.SECOND  # both are this machine's
