"""What Spark runs, and what has ended it, on both databases."""

from __future__ import annotations

import pytest

from tests.quarantine.poison import LOST
from tests.support.quarantine import quarantine
from tidegate.engine.store import SqlStore
from tidegate.engine.suspect import Suspect
from tidegate.rules.errors import EngineError

ONE = Suspect("action", "pay/0", "text", "12", told="action 1 of rule pay")


def _dies(store: SqlStore, suspect: Suspect) -> None:
    """It is stored as begun while it runs."""
    assert store.begun("bank") == (suspect,)
    raise LOST


def test_g13_the_store_keeps_suspects_and_shows_them(store: SqlStore) -> None:
    epoch = store.acquire("bank", "one", 600)
    made = quarantine(store, "bank", epoch)
    part = Suspect("where", "t", "text", "version 3", "version 3:0-64", "`where: x` of `e`")
    for suspect in (ONE, ONE, part, part):
        with pytest.raises(EngineError), made.run(suspect):
            _dies(store, suspect)
    assert store.begun("bank") == ()
    again = quarantine(store, "bank", epoch)
    assert again.of(ONE).deaths == 2
    assert [s.suspect.part for s in again.parts(part.whole)] == [part.part]
    shown = store.status("bank")["quarantined"]
    assert [(row["kind"], row["rule"], row["strikes"]) for row in shown] == [
        ("action", "pay", 2),
        ("where", None, 2),
    ]
    assert shown[0]["told"] == "action 1 of rule pay"
    again.release(["pay"])
    assert store.status("bank")["quarantined"] == []
    assert store.strikes("bank") == ()


def test_g21_a_stale_engine_begins_nothing(store: SqlStore) -> None:
    made = quarantine(store, "bank", store.acquire("bank", "one", 600))
    store.release("bank", 1)
    store.acquire("bank", "two", 600)
    with pytest.raises(EngineError, match="epoch 1 is over"), made.run(ONE):
        raise AssertionError
