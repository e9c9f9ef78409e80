"""What Spark runs, and what has ended it, on both databases."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from tests.quarantine.poison import LOST
from tests.support.holders import ended_holder, reused_holder
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.core.suspect import Strikes, Suspect
from tidegate.engine.replay.memory.opening import quarantine
from tidegate.engine.store import SqlStore
from tidegate.engine.store.holder import this_holder
from tidegate.rules.errors import EngineError


@pytest.fixture
def url(store_url: str) -> str:
    """Both databases, in the short suite, too."""
    return store_url


ONE = Suspect("action", "pay/0", "text", "12", told="action 1 of rule pay")


def _dies(store: SqlStore, suspect: Suspect) -> None:
    """It is stored as begun while it runs."""
    assert store.of("bank").suspects.begun() == (suspect,)
    raise LOST


def test_g13_the_store_keeps_suspects_and_shows_them(store: SqlStore) -> None:
    epoch = store.of("bank").lease.acquire("one", 600)
    made = quarantine(store.of("bank", epoch).suspects)
    part = Suspect("where", "t", "text", "version 3", "version 3:0-64", "`where: x` of `e`")
    for suspect in (ONE, ONE, part, part):
        with pytest.raises(EngineError), made.run(suspect):
            _dies(store, suspect)
    assert store.of("bank").suspects.begun() == ()
    again = quarantine(store.of("bank", epoch).suspects)
    assert again.of(ONE).deaths == 2
    assert [s.suspect.part for s in again.parts(part.whole)] == [part.part]
    shown = store.of("bank").status.shown()["quarantined"]
    assert [(row["kind"], row["rule"], row["strikes"]) for row in shown] == [
        ("action", "pay", 2),
        ("where", None, 2),
    ]
    assert shown[0]["told"] == "action 1 of rule pay"
    again.release(["pay"])
    assert store.of("bank").status.shown()["quarantined"] == []
    assert store.of("bank").suspects.strikes() == ()


def test_forgiving_is_for_a_suspect_and_not_for_the_other_slices(store: SqlStore) -> None:
    epoch = store.of("bank").lease.acquire("one", 600)
    slices = [Suspect("where", "t", "text", "version 3", f"version 3:{n}") for n in "12"]
    store.of("bank", epoch).suspects.strike([Strikes(one, deaths=1) for one in slices], [])
    store.of("bank", epoch).suspects.forgive(slices[:1])
    assert [one.suspect for one in store.of("bank").suspects.strikes()] == slices[1:]


def test_of_what_has_struck_twice_status_shows_present_texts_and_reads(store: SqlStore) -> None:
    epoch = store.of("bank").lease.acquire("one", 600)
    read = Suspect("read", "t", "", "1-2", part="1-2", told="reading versions 1 to 2 of table `t`")
    struck = [Strikes(ONE, deaths=2), Strikes(read, deaths=1, overruns=1)]
    store.of("bank", epoch).suspects.strike(struck, [])
    for texts, kinds in (
        (None, ["action", "read"]),
        ([ONE.key[:3]], ["action", "read"]),
        ([], ["read"]),
    ):
        shown = store.of("bank").status.shown(texts=lambda known=texts: known)["quarantined"]
        assert [row["kind"] for row in shown] == kinds


def test_g21_a_stale_engine_begins_nothing(store: SqlStore) -> None:
    made = quarantine(store.of("bank", store.of("bank").lease.acquire("one", 600)).suspects)
    store.of("bank", 1).lease.release()
    store.of("bank").lease.acquire("two", 600)
    with pytest.raises(EngineError, match="epoch 1 is over"), made.run(ONE):
        raise AssertionError


def test_g21_a_stale_engine_neither_strikes_nor_forgives(store: SqlStore) -> None:
    made = quarantine(store.of("bank", store.of("bank").lease.acquire("one", 600)).suspects)
    with pytest.raises(EngineError), made.run(ONE):
        raise LOST
    store.of("bank", 1).lease.release()
    store.of("bank").lease.acquire("two", 600)
    with pytest.raises(EngineError, match="epoch 1 is over"):
        made.overran([ONE], "it took longer")
    with pytest.raises(EngineError, match="epoch 1 is over"):
        made.forgive(ONE)
    (kept,) = store.of("bank").suspects.strikes()
    assert (kept.deaths, kept.overruns) == (1, 0)


@pytest.mark.parametrize(
    ("holder", "released", "ends"),
    [
        (this_holder(), False, 0),  # it has lost the lease, and goes on
        (ended_holder(), False, 1),
        (reused_holder(), False, 1),  # as in a container that is started again
        ("elsewhere/7/x", False, 1),
        ("elsewhere/7/x", True, 0),
    ],
    ids=["alive", "gone", "another with its id", "elsewhere", "released"],
)
def test_g13_only_an_end_of_the_process_counts_against_what_ran(
    store: SqlStore, holder: str, released: bool, ends: int
) -> None:
    store.of("bank", store.of("bank").lease.acquire(holder, 0)).suspects.begin([ONE])
    if released:
        store.of("bank", 1).lease.release()
    made = quarantine(store.of("bank", store.of("bank").lease.acquire(this_holder(), 600)).suspects)
    assert made.of(ONE).ends == ends
    assert store.of("bank").suspects.begun() == ()


@pytest.mark.parametrize("holder", [ended_holder(), "elsewhere/7/x"], ids=["gone", "elsewhere"])
def test_g13_a_kill_of_one_that_was_asked_to_stop_counts_against_nobody(
    store: SqlStore, holder: str
) -> None:
    ledger = store.of("bank", store.of("bank").lease.acquire(holder, 0))
    ledger.suspects.begin([ONE])
    ledger.lease.say(Activity("catching up").ending("running actions"))
    epoch = store.of("bank").lease.acquire(this_holder(), 600)
    made = quarantine(store.of("bank", epoch).suspects)
    assert not made.of(ONE).suspected
    assert store.of("bank").suspects.begun() == ()


def test_suspects_of_one_rulebook_are_none_of_another(store: SqlStore) -> None:
    made = {
        name: quarantine(store.of(name, store.of(name).lease.acquire("one", 600)).suspects)
        for name in ("a", "b")
    }
    for one in made.values():
        with pytest.raises(EngineError), one.run(ONE):
            raise LOST
    made["a"].forgive(ONE)
    assert store.of("a").suspects.strikes() == ()
    assert [one.deaths for one in store.of("b").suspects.strikes()] == [1]
    with made["b"].run(ONE):
        assert (store.of("a").suspects.begun(), store.of("b").suspects.begun()) == ((), (ONE,))
        assert quarantine(store.of("a", 1).suspects).of(ONE).count == 0


def test_a_strike_is_on_the_disk(store: SqlStore) -> None:
    """What begins need not be: it is stored for each statement."""
    if not store.database.is_sqlite:
        pytest.skip("SQLite's connection says how it was used last")
    epoch = store.of("bank").lease.acquire("one", 600)

    def synchronous() -> int:
        with store.database.read() as connection:
            return int(connection.execute(sa.text("PRAGMA synchronous")).scalar_one())

    store.of("bank", epoch).suspects.begin([ONE])
    assert synchronous() == 1
    store.of("bank", epoch).suspects.strike([Strikes(ONE, 1)], [])
    assert synchronous() == 2
