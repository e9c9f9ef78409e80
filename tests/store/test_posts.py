"""Signals of many requests in one transaction (G4, G28)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support import make
from tidegate.engine.core.text import json_text
from tidegate.engine.store import SqlStore, open_store, posts
from tidegate.engine.store.posts import IdConflict, Posted
from tidegate.rules.errors import EngineError


def request(
    *ids: str,
    fresh: bool = False,
    event: str = "atm_empty",
    books: Sequence[str] = ("bank",),
    **fields: Any,
) -> Posted:
    text = json_text.text(fields or {"atm_id": 4})
    return Posted(event, ids, dict.fromkeys(books, [text] * len(ids)), fresh)


def test_g04_requests_are_answered_each_for_itself(store: SqlStore) -> None:
    store.of("bank").signals.raise_signal(make.signal("known"))
    store.of("bank").signals.raise_signal(make.signal("other", fields={"atm_id": 5}))
    requests = [
        request("a", "b", "a"),
        request("c", "other", "d"),
        request("known", "e"),
        request("c", event="escalate"),
        request("c"),
        request("x", "y", fresh=True),
        Posted("atm_empty", ["f", "f"], {"bank": ['{"atm_id":1}', '{"atm_id":2}']}, False),
        request("a", "b", "known"),
    ]
    at = [make.BEGIN + n for n in range(1, len(requests) + 1)]
    found = store.raise_posted(requests, at)
    assert found == [2, IdConflict(1, "other"), 1, 1, IdConflict(0, "c"), 2, IdConflict(1, "f"), 0]
    there = {s.id: s.received_at - make.BEGIN for s in make.unplaced(store)}
    assert there == {"known": 0, "other": 0, "a": 1, "b": 1, "e": 3, "x": 6, "y": 6}
    assert make.unplaced_by_event(store, "bank") == {"atm_empty": 7, "escalate": 1}
    assert store.raise_posted([request("a", books=["stock"])], [make.BEGIN]) == [1]


def test_a_request_goes_into_all_of_its_rulebooks_or_into_none(store: SqlStore) -> None:
    both = ["bank", "stock"]
    store.of("stock").signals.raise_signal(make.signal("b", fields={"atm_id": 5}))
    requests = [
        request("a", "b", books=both),
        request("a", "c", books=both),
        request("c", "d", books=both[:1]),
        request("c", "d", books=both),
        request("c", "d", books=both),
        request("x", fresh=True, books=both),
    ]
    found = store.raise_posted(requests, range(10, 16))
    assert found == [IdConflict(1, "b"), 2, 1, 1, 0, 1]
    assert make.unplaced_by_event(store, "bank") == {"atm_empty": 4}
    assert make.unplaced_by_event(store, "stock") == {"atm_empty": 5}
    assert not store.raise_everywhere(dict.fromkeys(both, make.signal("a")))
    with pytest.raises(EngineError, match="of rulebook 'stock' stands for"):
        store.raise_everywhere(dict.fromkeys(both, make.signal("b")))
    assert make.unplaced_by_event(store, "bank") == {"atm_empty": 4}
    assert store.raise_everywhere(dict.fromkeys(both, make.signal("e")))


def test_what_is_posted_is_what_is_raised(store: SqlStore) -> None:
    fields = {"who": "é\0\n'\\\"", "note": None, "tags": [1, {"a": "b"}]}
    strange = "§ i'd \"é\\ 漢"
    store.raise_posted([request(strange, **fields)], [make.BEGIN])
    (found,) = make.unplaced(store)
    assert found == make.signal(strange, fields=fields)
    assert not store.of("bank").signals.raise_signal(found)
    with pytest.raises(EngineError):
        store.of("bank").signals.raise_signal(make.signal(strange))


def test_many_ids_are_looked_up_and_inserted_at_once(store: SqlStore) -> None:
    ids = [f"id-{n}" for n in range(40_000)]  # more than a statement may have parameters
    assert store.raise_posted([request(*ids)], [1]) == [40_000]
    assert store.raise_posted([request(*ids, "new")], [2]) == [1]
    assert store.raise_posted([request(*ids[::-1], atm_id=5)], [3]) == [IdConflict(0, ids[-1])]
    assert make.unplaced_by_event(store, "bank") == {"atm_empty": 40_001}


def test_nothing_of_a_group_stays_if_it_fails(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise sa.exc.OperationalError("INSERT", {}, Exception("disk full"))

    monkeypatch.setattr(posts, "_statements", fail)
    with pytest.raises(EngineError, match="disk full"):
        store.raise_posted([request("a")], [1])
    assert make.unplaced(store) == ()


def test_concurrent_writers_insert_each_signal_once(url: str, store: SqlStore) -> None:
    fresh: list[int] = []

    def send(n: int) -> None:
        with open_store(url, create=False) as own:
            for k in range(20):
                ids = [f"same-{(100 * k + m) % 3000}" for m in range(1000)]
                (found,) = own.raise_posted([request(*ids[:: 1 - 2 * (n % 2)])], [n])
                assert isinstance(found, int)
                fresh.append(found)

    threads = [threading.Thread(target=send, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fresh) == 80  # no writer was the victim of a deadlock
    assert sum(fresh) == len(make.unplaced(store)) == 2_900
