"""Why-not reads what its question needs, and no more than a bound."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy as sa

from tests.replay.why_not.stored import Stored, told
from tests.support.make import BEGIN, SECOND
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import Batch
from tidegate.engine.replay.why_not import sources
from tidegate.engine.replay.why_not.sources import Dropped, _beyond
from tidegate.engine.store import SqlStore
from tidegate.engine.store import past as past_module
from tidegate.engine.store import tables as t
from tidegate.engine.store.blobs import firings_from_columns, table_from_bytes

TEXT = """\
rulebook: shop
timezone: UTC
tables: {items: {path: /items, key: [id]}, out: {path: /out}}
events:
  new: {on: insert, table: items, where: amount > 5}
  told: {signal: {k: bigint}}
rules:
  r: {per: k, on: told}
  pair: {per: {new: id, told: k}, on: new ; told}
  cool: {per: k, on: told, cooldown: 1 h}
  own:
    per: id
    on: new
    ignore_own: true
    do: [{sql: "INSERT INTO items SELECT id, 9 AS amount, '' AS note FROM event"}]
"""


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The buckets whose firings are looked into."""
    looked = []

    def counted(data: bytes) -> pa.Table:
        found = table_from_bytes(data)
        looked.append(len(found))
        return found

    monkeypatch.setattr(past_module, "table_from_bytes", counted)
    return looked


def test_firings_are_read_of_the_time_that_is_asked_for(store: SqlStore, read: list[int]) -> None:
    run = Stored(store, TEXT)
    for n in range(40):
        run.signal(10 * n + 1, "told", k=n % 2).at(10 * n + 5)
    assert told(run.why_not("r", {"k": 7}, 390, 355))[0] == "occurrences"
    assert len(read) == 3
    read.clear()
    run.why_not("cool", {"k": 7}, 390, 355)
    assert len(read) > 30  # of an hour before: what damps


def test_no_more_firings_are_read_than_a_bound(store: SqlStore, read: list[int]) -> None:
    run = Stored(store, TEXT.replace("tables:", "settings: {bucket_rows_max: 5}\ntables:"))
    run.signal(1, "told", k=7).at(5)
    for n in range(1, 20):
        run.signal(10 * n + 1, "told", k=1).at(10 * n + 5)
    answer = run.why_not("r", {"k": 7})
    assert sum(read) == 6
    note = "firings before 09:02:11.000001 are not looked at: after them come more than 5"
    assert f"{note} (bucket_rows_max)" in answer.notes
    assert run.why_not("r", {"k": 7}, 8).fired is not None


def test_relations_are_read_of_the_key_alone(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Stored(store, TEXT)
    for n in range(6):
        run.signal(10 * n + 1, "told", k=7 if n == 3 else 1).at(10 * n + 5)
    whole = []

    def counted(*given: Any) -> Any:
        whole.append(given[0])
        return firings_from_columns(*given)

    monkeypatch.setattr(past_module, "firings_from_columns", counted)
    assert run.why_not("r", {"k": 7}).fired is not None
    assert len(whole) == 1


def test_a_page_of_buckets_at_a_time_finds_the_same(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Stored(store, TEXT)
    for n in range(9):
        run.signal(10 * n + 1, "told", k=n % 3).at(10 * n + 5)
    whole = lambda table: np.ones(len(table), np.bool_)  # noqa: E731
    given = ("r", BEGIN, BEGIN + 100 * SECOND, whole, 1_000)
    every, _ = run.ledger.past.firings(*given)
    assert len(every) == 9
    assert [*every] == sorted(every)
    monkeypatch.setattr(past_module, "PAGE_BUCKETS", 2)
    paged, begin = run.ledger.past.firings(*given)
    assert ([*paged], begin) == ([*every], None)
    assert all(paged[n].firings.equals(every[n].firings) for n in every)


def test_firings_of_a_page_are_read_together_up_to_a_number_of_bytes(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Stored(store, TEXT)
    for n in range(9):
        run.signal(10 * n + 1, "told", k=n % 3).at(10 * n + 5)
    odd = lambda table: np.array([k == 1 for k in table["k"].to_pylist()])  # noqa: E731
    given = ("r", BEGIN, BEGIN + 100 * SECOND, odd, 1_000)
    asked = []

    def counted(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        asked.append(statement)

    def statements() -> int:
        asked.clear()
        found, _ = run.ledger.past.firings(*given)
        assert len(found) == 3
        return sum("FROM firings" in one for one in asked)

    sa.event.listen(sa.Engine, "before_cursor_execute", counted)
    try:
        assert statements() == 3  # a page, the firings in it, and those of the key whole
        monkeypatch.setattr(past_module, "PAGE_BYTES", 1)
        assert statements() == 1 + 9 + 3
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", counted)


def test_versions_that_actions_wrote_are_looked_up_of_those_that_are_read(store: SqlStore) -> None:
    run = Stored(store, TEXT)
    for n in range(1, 5):
        run.insert(10 * n, {"id": n, "amount": 9}).at(10 * n + 5)
    with store.database.write() as connection:  # the memory sink does not say its versions
        for made, number in enumerate(
            [*connection.execute(sa.select(t.outbox.c.number)).scalars()]
        ):
            one = sa.update(t.outbox).where(t.outbox.c.number == number)
            connection.execute(one.values(effect_version=10 + made))
    past = run.ledger.past
    assert past.writers("own", "items", 0, 1_000) == {10, 11, 12, 13}
    assert past.writers("own", "items", 11, 12) == {11, 12}
    assert not past.writers("own", "out", 0, 1_000)
    assert not past.writers("r", "items", 0, 1_000)


def test_rows_of_other_keys_are_no_python_rows(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Stored(store, TEXT)
    run.insert(10, *({"id": n, "amount": 1} for n in range(200))).at(15)
    run.signal(20, "told", k=7).at(25)
    made = []

    def counted(table: pa.Table) -> Any:
        made.append(len(table))
        return python_rows(table)

    monkeypatch.setattr(sources, "python_rows", counted)
    answer = run.why_not("pair", {"id": 7})
    assert "(amount is 1)" in told(answer)[1]
    assert sum(made) == 1
    assert told(run.why_not("pair", {"id": 999}))[1].startswith(
        "No `new` or `told` came for id 999"
    )


def rows(event: str, draw: Random, count: int) -> Batch:
    time = np.sort(np.array([draw.randint(0, 3) for _ in range(count)], np.int64))
    table = pa.table({"k": [draw.choice([1, 2, None]) for _ in range(count)]})
    return Batch(event, time, np.arange(count), table)


def test_what_is_left_of_equal_rows_is_counted() -> None:
    several = 0
    for seed in range(200):
        draw = Random(seed)
        more = rows("a", draw, draw.randint(0, 12))
        kept = np.array([n for n in range(len(more)) if draw.random() < 0.5], np.int64)
        fewer = more.take(kept)
        left = _beyond(fewer, more)

        def counts(batch: Batch | None) -> Counter[tuple[int, Any]]:
            if batch is None:
                return Counter()
            values = batch.table["k"].take(pa.array(batch.row)).to_pylist()
            return Counter(zip(batch.time.tolist(), values, strict=True))

        assert counts(left) == counts(more) - counts(fewer)
        several += max(counts(left).values(), default=0) > 1
    assert several > 30


def test_rows_that_several_filters_dropped_stand_in_order_of_time() -> None:
    of = Batch("a", np.array([1, 5]), np.array([0, 1]), pa.table({"k": [10, 50]}))
    where = Batch("a", np.array([3, 7]), np.array([1, 0]), pa.table({"k": [70, 30]}))
    found = Dropped("a", [("of", "k", of), ("where", "k > 9", where)])
    assert [(row.instant, row.by, row.row["k"]) for row in found] == [
        (1, "of", 10), (3, "where", 30), (5, "of", 50), (7, "where", 70),
    ]  # fmt: skip
    assert found[-1].row == {"k": 70}
    assert found.instants.tolist() == [1, 3, 5, 7]
    assert len(Dropped("a", [])) == 0
