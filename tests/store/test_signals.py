"""Explicit occurrences: durable, each once, placed by a bucket (G4)."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa

from tests.support import make
from tests.support.capture import FRESH
from tests.support.rulebooks import rulebook as model
from tests.support.rulebooks import signal as declared
from tidegate.engine.capture.plan import Listing, make_plan
from tidegate.engine.core.ledger import Arrivals, Unplaced
from tidegate.engine.store import SqlStore, open_store
from tidegate.rules.errors import EngineError


@pytest.fixture
def url(store_url: str) -> str:
    """Both databases, in the short suite, too."""
    return store_url


def test_g04_the_same_id_and_body_is_one_occurrence(store: SqlStore) -> None:
    assert store.of("bank").signals.raise_signal(make.signal())
    later = make.signal(at=make.BEGIN + make.HOUR)
    assert not store.of("bank").signals.raise_signal(later)
    assert make.unplaced(store) == (make.signal(),)
    assert store.of("stock").signals.raise_signal(make.signal())  # another rulebook's id


@pytest.mark.parametrize("other", [{"fields": {"atm_id": 5}}, {"event": "escalate"}])
def test_g04_the_same_id_with_another_body_is_a_conflict(
    store: SqlStore, other: dict[str, object]
) -> None:
    store.of("bank").signals.raise_signal(make.signal())
    with pytest.raises(EngineError, match=r"id 's1' .* stands for atm_empty .*atm_id") as caught:
        store.of("bank").signals.raise_signal(make.signal(**other))
    assert caught.value.code == "signal-conflict"
    assert make.unplaced(store) == (make.signal(),)


def test_g04_an_id_stays_taken_once_it_is_placed(store: SqlStore) -> None:
    store.of("bank").signals.raise_signal(make.signal())
    place(store, "s1")
    assert not store.of("bank").signals.raise_signal(make.signal())
    assert make.unplaced(store) == ()


def test_signals_come_by_the_time_they_were_received(store: SqlStore) -> None:
    for name, at in (("c", 2), ("b", 1), ("d", 3), ("a", 2)):
        store.of("bank").signals.raise_signal(make.signal(name, make.BEGIN + at))
    assert [signal.id for signal in make.unplaced(store)] == ["b", "a", "c", "d"]


def capped(store: SqlStore, rulebook: str, cap: int, begin: int, now: int) -> list[tuple[int, str]]:
    """(instant, id) of all signals, in the order in which the buckets of plans hold them."""
    book = model(tables=[], events=[declared("s")], signals_max=cap)
    state = replace(FRESH, bucket=1, watermark=begin, activations={"on_s": begin})
    epoch = store.of(rulebook).lease.acquire("one", 60)
    make.commit(store, epoch, make.plan(1, rulebook=rulebook))
    found: list[tuple[int, str]] = []
    while True:
        unplaced = store.of(rulebook).signals.unplaced(("s",), state.watermark or 0, cap)
        plan = make_plan(book, state, Listing(now, {}), unplaced, {})
        if plan is None:
            assert unplaced == Unplaced()
            return found
        assert len(plan.signals) >= min(cap, len(unplaced.signals))
        assert plan.more == (unplaced.left_out is not None)
        make.commit(store, epoch, replace(plan, rulebook=rulebook))
        in_order = sorted(plan.signals, key=lambda s: (s.instant, s.id))
        found += [(signal.instant or 0, signal.id) for signal in in_order]
        state = replace(state, bucket=plan.bucket, watermark=plan.watermark)


@pytest.mark.parametrize("seed", range(4))
def test_g04_a_cap_changes_no_order_and_never_stands_still(store: SqlStore, seed: int) -> None:
    draw = random.Random(seed)
    begin, count = make.BEGIN + 998, draw.randint(1, 40)
    spread = draw.choice((600, 3_000, 20_000))  # us: within a cell or two, or over many
    times = [begin + draw.randint(-spread // 3, spread) for _ in range(count)]
    runs = []
    for cap in (count + 1, 1, 2, 3):
        for n, at in enumerate(times):
            raised = make.signal(f"{n * 7 % count}", at, event="s")
            store.of(f"cap-{cap}").signals.raise_signal(raised)
            store.of(f"cap-{cap}").signals.raise_signal(
                replace(raised, id=f"gone-{n}", event="gone")
            )
        runs.append(capped(store, f"cap-{cap}", cap, begin, begin + spread + 2_000))
        assert make.unplaced_by_event(store, f"cap-{cap}") == {"gone": count}
    assert runs[0] == sorted((max(at, begin + 1), i) for at, i in ids(times))
    assert runs[1:] == runs[:1] * 3


def ids(times: list[int]) -> list[tuple[int, str]]:
    return [(at, f"{n * 7 % len(times)}") for n, at in enumerate(times)]


def test_g04_the_cap_counts_declared_signals_and_takes_a_cell_whole(store: SqlStore) -> None:
    times = {"old": -9, "older": -99, "a": 1_002, "b": 2_998, "c": 2_999, "d": 9_000}
    for name, at in times.items():
        store.of("bank").signals.raise_signal(make.signal(name, make.BEGIN + at))
    store.of("bank").signals.raise_signal(
        make.signal("gone", make.BEGIN - 500, event="no_longer_declared")
    )

    def first(cap: int, watermark: int = make.BEGIN + 998) -> tuple[list[str], int | None]:
        found = store.of("bank").signals.unplaced(("atm_empty", "other"), watermark, cap)
        return [s.id for s in found.signals], found.left_out and found.left_out - make.BEGIN

    # Those received before the watermark stand just after it, in the cell of `a`.
    assert first(1) == (["older", "old", "a"], 2_998)
    assert first(4) == (["older", "old", "a", "b"], 2_999)
    assert first(5) == (["older", "old", "a", "b", "c"], 9_000)
    assert first(6) == first(9) == (["older", "old", *"abcd"], None)
    assert store.of("bank").signals.unplaced((), make.BEGIN, 1) == Unplaced()


def test_what_waits_for_a_plan_is_one_query(
    store: SqlStore, queries: Callable[[], list[str]]
) -> None:
    epoch = store.of("bank").lease.acquire("one", 60)
    queries()
    assert store.of("bank", epoch).signals.arrivals(("atm_empty", "other")) == Arrivals()
    assert len([query for query in queries() if "FROM" in query]) == 1
    store.of("bank").signals.raise_signal(
        make.signal("x", make.BEGIN - 1, event="no_longer_declared")
    )
    assert store.of("bank", epoch).signals.arrivals(("atm_empty",)) == Arrivals()
    for name, at in (("a", 2), ("b", 1), ("c", 3)):
        store.of("bank").signals.raise_signal(make.signal(name, at))
    assert store.of("bank", epoch).signals.arrivals(("atm_empty",)) == Arrivals(False, 1, 3)
    assert store.of("bank", epoch).signals.arrivals(()) == Arrivals()
    store.of("bank").controls.ask("reset", "t")
    assert store.of("bank", epoch).signals.arrivals(()) == Arrivals(True)
    make.commit(store, epoch, make.plan(controls=(1,)))
    assert store.of("bank", epoch).signals.arrivals(()) == Arrivals()
    store.of("bank", epoch).lease.release()
    store.of("bank").lease.acquire("two", 60)
    for rulebook in ("bank", "unknown"):
        with pytest.raises(EngineError, match="engine's epoch 1 is over") as caught:
            store.of(rulebook, epoch).signals.arrivals(())
        assert caught.value.code == "lease-lost"


@pytest.fixture
def queries() -> Iterator[Callable[[], list[str]]]:
    """The statements executed since the last call."""
    texts: list[str] = []

    def note(_c: object, _cursor: object, text: str, *_: object) -> None:
        texts.append(text)

    def taken() -> list[str]:
        found = [*texts]
        texts.clear()
        return found

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    yield taken
    sa.event.remove(sa.Engine, "before_cursor_execute", note)


def place(store: SqlStore, *ids: str) -> None:
    epoch = store.of("bank").lease.acquire("one", 60)
    bucket = store.of("bank").buckets.load().bucket + 1
    placed = tuple(replace(make.signal(name), instant=make.BEGIN + 7) for name in ids)
    make.commit(store, epoch, make.plan(bucket, signals=placed))


def test_g04_a_bucket_places_many_and_leaves_the_others(store: SqlStore) -> None:
    for name in "abcde":
        store.of("bank").signals.raise_signal(make.signal(name))
    place(store, "a", "c", "d")
    assert [signal.id for signal in make.unplaced(store)] == ["b", "e"]


@pytest.mark.parametrize("name", ["a", "unknown"])
def test_g04_a_signal_is_in_one_bucket_only(store: SqlStore, name: str) -> None:
    for known in "ab":
        store.of("bank").signals.raise_signal(make.signal(known))
    place(store, "a")
    with pytest.raises(EngineError, match=r"signals of bucket 2 .* or gone: 1") as caught:
        place(store, "b", name)
    assert caught.value.code == "signal-placed"
    assert store.of("bank").buckets.load().bucket == 1
    assert [signal.id for signal in make.unplaced(store)] == ["b"]


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
    store.of("bank").signals.raise_signal(make.signal(fields=fields))
    (found,) = make.unplaced(store)
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
    assert not store.of("bank").signals.raise_signal(
        make.signal(fields=dict(reversed(fields.items())))
    )
    assert not store.of("bank").signals.raise_signal(make.signal(fields=found.fields))


def test_concurrent_senders_insert_each_signal_once(url: str, store: SqlStore) -> None:
    fresh: list[bool] = []

    def send(n: int) -> None:
        with open_store(url, create=False) as own:
            for k in range(5):
                fresh.append(own.of("bank").signals.raise_signal(make.signal(f"same-{k}")))
                fresh.append(own.of("bank").signals.raise_signal(make.signal(f"own-{n}-{k}")))

    threads = [threading.Thread(target=send, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (fresh.count(True), fresh.count(False)) == (25, 15)
    assert len(make.unplaced(store)) == 25
