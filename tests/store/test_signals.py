"""Explicit occurrences: durable, each once, placed by a bucket (G4)."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from engine.store import SqlStore, open_store
from rules.errors import EngineError
from tests.store import make


def test_g04_the_same_id_and_body_is_one_occurrence(store: SqlStore) -> None:
    assert store.raise_signal("bank", make.signal())
    later = make.signal(at=make.BEGIN + make.HOUR)
    assert not store.raise_signal("bank", later)
    assert store.unplaced_signals("bank", 9) == (make.signal(),)
    assert store.raise_signal("stock", make.signal())  # another rulebook's id


@pytest.mark.parametrize("other", [{"fields": {"atm_id": 5}}, {"event": "escalate"}])
def test_g04_the_same_id_with_another_body_is_a_conflict(
    store: SqlStore, other: dict[str, object]
) -> None:
    store.raise_signal("bank", make.signal())
    with pytest.raises(EngineError, match=r"id 's1' .* stands for atm_empty .*atm_id") as caught:
        store.raise_signal("bank", make.signal(**other))
    assert caught.value.code == "signal-conflict"
    assert store.unplaced_signals("bank", 9) == (make.signal(),)


def test_g04_an_id_stays_taken_once_it_is_placed(store: SqlStore) -> None:
    store.raise_signal("bank", make.signal())
    place(store, "s1")
    assert not store.raise_signal("bank", make.signal())
    assert store.unplaced_signals("bank", 9) == ()


def test_signals_come_by_the_time_they_were_received(store: SqlStore) -> None:
    for name, at in (("c", 2), ("b", 1), ("d", 3), ("a", 2)):
        store.raise_signal("bank", make.signal(name, make.BEGIN + at))
    assert [signal.id for signal in store.unplaced_signals("bank", 3)] == ["b", "a", "c"]


def place(store: SqlStore, *ids: str) -> None:
    epoch = store.acquire("bank", "one", 60)
    bucket = store.load("bank").bucket + 1
    placed = tuple(replace(make.signal(name), instant=make.BEGIN + 7) for name in ids)
    make.commit(store, epoch, make.plan(bucket, signals=placed))


def test_g04_a_bucket_places_many_and_leaves_the_others(store: SqlStore) -> None:
    for name in "abcde":
        store.raise_signal("bank", make.signal(name))
    place(store, "a", "c", "d")
    assert [signal.id for signal in store.unplaced_signals("bank", 9)] == ["b", "e"]


@pytest.mark.parametrize("name", ["a", "unknown"])
def test_g04_a_signal_is_in_one_bucket_only(store: SqlStore, name: str) -> None:
    for known in "ab":
        store.raise_signal("bank", make.signal(known))
    place(store, "a")
    with pytest.raises(EngineError, match="1 signals of bucket 2") as caught:
        place(store, "b", name)
    assert caught.value.code == "signal-placed"
    assert store.load("bank").bucket == 1
    assert [signal.id for signal in store.unplaced_signals("bank", 9)] == ["b"]


def test_fields_come_back_as_json_has_them(store: SqlStore) -> None:
    fields: dict[str, Any] = {
        "int": 2**62,
        "none": None,
        "bool": True,
        "text": "é\x00\n\ud7ff'",
        "decimal": Decimal("12.50"),
        "double": 0.1,
        "infinite": float("-inf"),
        "binary": b"\x00\xff",
        "timestamp": datetime(2026, 3, 2, 9, 0, 0, 1, tzinfo=UTC),
        "ntz": datetime(2026, 3, 2),
        "date": date(2026, 3, 2),
        "array": [1, None, [2]],
        "struct": {"b": Decimal(1), "a": {"c": None}},
        "map": [(2, None), (1, date(2026, 1, 1))],
    }
    store.raise_signal("bank", make.signal(fields=fields))
    (found,) = store.unplaced_signals("bank", 1)
    assert found.fields == {
        **fields,
        "decimal": "12.50",
        "infinite": "-Infinity",
        "binary": "AP8=",
        "timestamp": "2026-03-02T09:00:00.000001Z",
        "ntz": "2026-03-02T00:00:00",
        "date": "2026-03-02",
        "struct": {"a": {"c": None}, "b": "1"},
        "map": [[1, "2026-01-01"], [2, None]],
    }
    assert not store.raise_signal("bank", make.signal(fields=dict(reversed(fields.items()))))
    assert not store.raise_signal("bank", make.signal(fields=found.fields))


def test_concurrent_senders_insert_each_signal_once(url: str, store: SqlStore) -> None:
    fresh: list[bool] = []

    def send(n: int) -> None:
        with open_store(url, create=False) as own:
            for k in range(5):
                fresh.append(own.raise_signal("bank", make.signal(f"same-{k}")))
                fresh.append(own.raise_signal("bank", make.signal(f"own-{n}-{k}")))

    threads = [threading.Thread(target=send, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (fresh.count(True), fresh.count(False)) == (25, 15)
    assert len(store.unplaced_signals("bank", 99)) == 25
