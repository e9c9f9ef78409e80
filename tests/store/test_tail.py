"""What a program that waits is told, from a position on: all of it, once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa

from tests.support import make
from tidegate.engine.core.values import CLIENT, ENGINE
from tidegate.engine.store import SqlStore, open_store
from tidegate.engine.store import tables as t
from tidegate.engine.store import tail as tails
from tidegate.engine.store.tail import EARLIEST, Heard, Tail
from tidegate.rules.errors import EngineError

DAYS = 365 * 100  # the history of these tests is of no year in particular
RULE, SIGNAL = Heard("bank", "a", False, DAYS), Heard("bank", "atm_empty", True, DAYS)


@pytest.fixture
def epoch(store: SqlStore) -> int:
    return store.of("bank").lease.acquire("one", 60)


def bucket(store: SqlStore, epoch: int, number: int, draw: random.Random) -> None:
    """Some firings of three rules, some signals of two events."""
    fired = [
        make.firings(
            rule,
            bucket=number,
            condition=pa.array(draw.choices(["none", "held", "failed"], k=count)),
            damped=pa.array(draw.choices([*[None] * 6, "throttle"], k=count), pa.string()),
        )
        for rule in "abc"
        if (count := draw.randint(0, 3))
    ]
    at = make.BEGIN + number * make.HOUR
    placed = [
        make.signal(f"{number}-{n}", at, event=draw.choice(["atm_empty", "other"]))
        for n in range(draw.randint(0, 4))
    ]
    for signal in placed:
        store.of("bank").signals.raise_signal(signal)
    instants = [replace(s, instant=at + draw.randint(0, 2)) for s in placed]
    make.commit(store, epoch, make.plan(number, signals=tuple(instants)), fired=fired)


def expected(store: SqlStore, heard: Heard) -> list[str]:
    """All that a program is told of, one after the other."""
    if not heard.is_signal:
        found = store.of("bank").firings.listed(rule=heard.name)
        told = [f for f in found if f["condition"] != "failed" and "damped" not in f]
        order = {f["firing_id"]: n for n, f in enumerate(told)}
        return sorted(order, key=lambda one: (told[order[one]]["bucket"], order[one]))
    c = t.signals.c
    query = sa.select(c.id).where(c.event == heard.name, c.bucket.is_not(None))
    with store.database.read() as connection:
        ordered = query.order_by(c.bucket, c.instant, c.id)
        return list(connection.execute(ordered).scalars())


def names(items: list[tuple[str, dict[str, Any]]]) -> list[str]:
    return [item["firing_id"] if "firing_id" in item else item["id"] for _, item in items]


@pytest.mark.parametrize("heard", [RULE, SIGNAL], ids=["rule", "signal"])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_passed_over_and_nothing_comes_twice(
    store: SqlStore, epoch: int, url: str, heard: Heard, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tails, "PAGE_ROWS", 2)
    draw = random.Random(seed)
    whole = Tail(store, heard, EARLIEST)
    position = Tail(store, heard, None).position
    told, again = [], []
    for number in range(1, 12):
        bucket(store, epoch, number, draw)
        while draw.random() < 0.6:
            told += names(whole.take(draw.randint(1, 3)))
        with open_store(url, create=False) as restarted:  # each time anew, at its position
            while draw.random() < 0.6:
                anew = Tail(restarted, heard, position)
                items = anew.take(draw.randint(1, 3))
                again += names(items)
                position = anew.position
    told += rest(whole)
    again += rest(Tail(store, heard, position))
    assert told == again == expected(store, heard)
    assert len(told) >= 5


def rest(tail: Tail) -> list[str]:
    found = []
    while items := tail.take(2):
        found += names(items)
    return found


@pytest.mark.parametrize("heard", [RULE, SIGNAL], ids=["rule", "signal"])
def test_every_item_is_a_position_to_go_on_from(store: SqlStore, epoch: int, heard: Heard) -> None:
    draw = random.Random(5)
    for number in range(1, 6):
        bucket(store, epoch, number, draw)
    items = Tail(store, heard, EARLIEST).take(99)
    for n, (position, _) in enumerate(items):
        assert Tail(store, heard, position).take(99) == items[n + 1 :]
    assert Tail(store, heard, None).take(99) == []


def test_g26_what_stands_before_rows_that_are_gone_is_told_first(
    store: SqlStore, epoch: int, tmp_path: Path
) -> None:
    """All in one page: a, then b, whose file is gone, then c."""
    for number, count in enumerate((2, 3, 1), 1):
        fired = make.firings("a", count, number)
        if number == 2:
            own = store.of("bank").buckets.shelf(str(tmp_path), number)
            assert own is not None
            fired = fired.on(own, always=True)
        make.commit(store, epoch, make.plan(number), fired=[fired])
    (file,) = tmp_path.glob("*/*/*.parquet")
    file.unlink()
    tail = Tail(store, RULE, EARLIEST)
    assert [item["bucket"] for _, item in tail.take(99)] == [1, 1]
    for _ in range(2):
        with pytest.raises(EngineError, match=f"state file {file} is gone"):
            tail.take(99)
    assert tail.position.endswith("-1-2")
    assert tail.pass_over() == 2
    assert tail.position.endswith("-2-3")
    assert [item["bucket"] for _, item in tail.take(99)] == [3]


def test_a_signal_is_told_as_a_trace_has_it(store: SqlStore, epoch: int) -> None:
    fields = {"id": 7, "who": "Ada"}
    for signal in (make.signal("x", fields=fields), make.signal("y", fields={"atm_id": 4})):
        store.of("bank").signals.raise_signal(signal)
    placed = tuple(replace(s, instant=make.BEGIN + 5) for s in make.unplaced(store))
    assert Tail(store, SIGNAL, EARLIEST).take(9) == []  # not placed yet
    make.commit(store, epoch, make.plan(signals=placed))
    store.of("stock").signals.raise_signal(make.signal("z"))  # of another rulebook
    elsewhere = make.plan(rulebook="stock", signals=(replace(make.signal("z"), instant=5),))
    make.commit(store, store.of("stock").lease.acquire("one", 60), elsewhere)
    head = {"event": "atm_empty", "time": "2026-03-02T09:00:00.000005Z", "bucket": 1}
    found = [item for _, item in Tail(store, SIGNAL, EARLIEST).take(9)]
    assert found == [{**head, "$id": "x", **fields}, {**head, "id": "y", "atm_id": 4}]


@pytest.mark.parametrize("heard", [RULE, SIGNAL], ids=["rule", "signal"])
def test_a_position_whose_sequel_may_be_forgotten_is_refused(
    store: SqlStore, epoch: int, heard: Heard
) -> None:
    draw = random.Random(5)
    with store.database.read() as connection:
        now = tails.server_now(connection)
    for number in range(1, 5):
        bucket(store, epoch, number, draw)
        set_now(store, number, now - (5 - number) * tails.MICROS_PER_DAY)
    kept = replace(heard, retention_days=3)  # of buckets 3 and 4, and the end of 2
    items = Tail(store, heard, EARLIEST).take(99)
    store_id = items[0][0][:8]
    old = [position for position, item in items if item["bucket"] <= 2]
    assert old
    for position in (*old, f"{store_id}-0-0", f"{store_id}-2-0"):
        gone(store, kept, position, "older than what is kept, 3 days")
    later = [item for item in items if item[1]["bucket"] > 2]
    assert Tail(store, kept, f"{store_id}-3-0").take(99) == later
    assert Tail(store, kept, EARLIEST).take(99) == items  # begins with what is there
    gone(store, heard, f"{store_id}-3-99", "its bucket has been forgotten")
    gone(store, heard, f"{store_id}-5-0", "no such bucket yet")
    gone(store, heard, "00000000-3-0", "another store")
    running, begun = Tail(store, kept, f"{store_id}-3-0"), Tail(store, kept, EARLIEST)
    assert (begun.take(99), begun.take(1)) == (items, [])  # what was there is through
    hour = tails.MICROS_PER_HOUR
    for third, fourth in ((hour // 2, -hour), (2 * hour, 2 * hour)):  # then a clock is set back
        set_now(store, 3, now - 3 * tails.MICROS_PER_DAY + third)
        set_now(store, 4, now + fourth)
        with pytest.raises(EngineError, match="older than what is kept"):
            running.take(1)
    set_now(store, 4, now - 4 * tails.MICROS_PER_DAY)
    with pytest.raises(EngineError, match="older than what is kept"):
        begun.take(1)


@pytest.mark.parametrize("text", ["", "1", "3-0", "zzzzzzzz-1-1", "00000000-1", "now", "é" * 500])
def test_what_is_no_position_is_refused(store: SqlStore, text: str) -> None:
    with pytest.raises(EngineError, match="is not a position") as refused:
        Tail(store, RULE, text)
    assert refused.value.code == "bad-position"
    assert len(str(refused.value)) < 300


def test_purged_firings_are_not_passed_over_in_silence(store: SqlStore, epoch: int) -> None:
    for number in range(1, 4):
        entry = make.entry("a", state="dead" if number == 1 else "done")
        fired = make.firings("a", 1, number)
        make.commit(store, epoch, make.plan(number), fired=[fired], entries=[entry])
    tail = Tail(store, RULE, EARLIEST)
    ((first, _),) = tail.take(1)
    with store.database.read() as connection:
        age = tails.server_now(connection) - make.plan(3).now
    days = -(-age // tails.MICROS_PER_DAY)
    make.purge(store, epoch, firings=make.plan(3).now)  # bucket 1 stays: its entry is dead
    assert [f["bucket"] for f in store.of("bank").firings.listed(rule="a")] == [1, 3]
    with pytest.raises(EngineError) as refused:
        Tail(store, replace(RULE, retention_days=days - 1), first)
    assert refused.value.code == "position-gone"


def gone(store: SqlStore, heard: Heard, position: str, said: str) -> None:
    with pytest.raises(EngineError, match=said) as refused:
        Tail(store, heard, position)
    assert (refused.value.code, "earliest" in refused.value.hint) == ("position-gone", True)


def set_now(store: SqlStore, number: int, now: int) -> None:
    """As if the bucket had been planned then."""
    with store.database.write() as connection:
        one = (t.buckets.c.rulebook == "bank") & (t.buckets.c.bucket == number)
        connection.execute(sa.update(t.buckets).where(one).values(now=now))


@pytest.fixture(autouse=True)
def _few_left(store: SqlStore) -> Iterator[None]:
    """No test leaves a transaction open."""
    yield
    with store.database.write() as connection:
        connection.execute(sa.select(1))


def test_g28_an_id_in_both_namespaces_is_two_signals_told_apart(
    store: SqlStore, epoch: int
) -> None:
    """One of them has a field `id`."""
    bodies: list[dict[str, Any]] = [{"id": 4}, {"atm_id": 4}]
    own = [make.signal(f"f{n}-0", fields=b, namespace=ENGINE) for n, b in enumerate(bodies)]
    given = [replace(signal, namespace=CLIENT) for signal in own]
    store.of("bank", epoch).signals.tell(own)
    assert [store.of("bank").signals.raise_signal(signal) for signal in given] == [True, True]
    store.of("bank", epoch).signals.tell(own)
    assert [store.of("bank").signals.raise_signal(signal) for signal in given] == [False, False]
    waiting = make.unplaced(store)
    assert waiting == (given[0], own[0], given[1], own[1])
    placed = tuple(replace(signal, instant=make.BEGIN + 7) for signal in waiting)
    make.commit(store, epoch, make.plan(signals=placed[:3]))
    assert make.unplaced(store) == (own[1],)
    make.commit(store, epoch, make.plan(2, signals=placed[3:]))
    told = [item for _, item in Tail(store, SIGNAL, EARLIEST).take(9)]
    engine = {"$namespace": "engine"}
    head = {"event": "atm_empty", "time": "2026-03-02T09:00:00.000007Z"}
    assert told == [
        {**head, "$id": "f0-0", "bucket": 1, "id": 4},
        {**head, "$id": "f0-0", **engine, "bucket": 1, "id": 4},
        {**head, "id": "f1-0", "bucket": 1, "atm_id": 4},
        {**head, "id": "f1-0", **engine, "bucket": 2, "atm_id": 4},
    ]
