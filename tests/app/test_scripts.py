"""Event scripts of an engine on real Delta tables: rows, signals, timers, and what crashes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.support.lake import Shop
from tidegate.engine.core.failpoints import arm
from tidegate.engine.store import open_store
from tidegate.rules.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BOOK = """\
rulebook: shop
tables:
  orders: {path: ./orders, key: [id]}
  log: {path: ./log}
events:
  ordered: {on: insert, table: orders}
scripts:
  paying:
    text: |  # `paid` is no event type of the rulebook: it is a signal
      in {long id; long amount;} ordered group(ordered.id), {long id;} paid group(paid.id)
      out {long amount; long n;} late, long thanks
      (ordered(o) {n = n + 1;}
       (paid() {!> thanks(o.amount);}
        | elapse[o.amount seconds]() {!> late({amount: o.amount, n: n});}))*
  dear:
    text: |
      in long late case {late > 1 ? Dear : Cheap}
      out long dear
      (Cheap() | Dear(x) {!> dear(x);})*
    in: {late: {event: late, value: amount}}
rules:
  lates:
    on: late
    per: id
    do: [{sql: "INSERT INTO log SELECT 'late', id, amount + n FROM event"}]
  thanked: {on: thanks, do: [{sql: "INSERT INTO log SELECT 'thanks', id, value FROM event"}]}
  dears: {on: dear, do: [{sql: "INSERT INTO log SELECT 'dear', NULL, value FROM event"}]}
"""


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    shop = Shop(spark, tmp_path)
    shop.book.write_text(BOOK)
    shop.create("orders", "id BIGINT, amount INT, note STRING")
    shop.create("log", "what STRING, id BIGINT, amount BIGINT")
    shop.run_once()
    return shop


def test_rows_signals_and_timers_reach_a_script_and_rules_write_what_it_emits(shop: Shop) -> None:
    """Ends in the middle, once before and once after a bucket is committed, make no difference."""
    shop.order((1, 1, "a"), (2, 9999, "b"), (3, 2, "c"))
    with pytest.raises(Exception, match=r"commit\.before"):
        crash(shop, "commit.before=raise")
    with shop.engine() as engine:
        engine.signal("paid", {"id": 2})
    with pytest.raises(Exception, match=r"queue\.added"):
        crash(shop, "queue.added=raise")
    time.sleep(2.5)  # the slack included
    shop.run_once()
    assert shop.logged() == {
        ("thanks", 2, 9_999): 1,
        ("late", 1, 2): 1,
        ("late", 3, 3): 1,
        ("dear", None, 2): 1,
    }
    with open_store(shop.store, create=False) as store:
        depths = {firing["depth"] for firing in store.of("shop").firings.listed()}
        assert depths == {1}
        assert store.of("shop").status.shown()["rejected_rows"] == 0


@pytest.mark.long
def test_g09_a_script_that_is_edited_while_the_engine_runs_starts_anew_and_no_other(
    shop: Shop,
) -> None:
    """What only the other script has seen is still seen: the order waits to be paid."""
    with shop.engine() as engine:
        shop.order((1, 9999, "a"))
        engine.run_once()
        shop.edit("late > 1 ?", "late > 2 ?")
        engine.reread()
        engine.signal("paid", {"id": 1})
        engine.run_once()
        version = shop.status()["version"]
    assert (version, shop.logged()) == (2, {("thanks", 1, 9_999): 1})


def crash(shop: Shop, point: str) -> None:
    try:
        with shop.engine() as engine:
            arm(point)
            engine.run_once()
    finally:
        arm("")


@pytest.mark.long
def test_a_script_that_reads_what_a_table_has_not_is_refused(shop: Shop) -> None:
    shop.edit("{long id; long amount;} ordered", "{long id; long price;} ordered")
    shop.edit("o.amount", "o.price")
    with pytest.raises(InputError) as refused:
        shop.run_once()
    assert [(p.code, p.message) for p in refused.value.problems] == [
        ("unknown-column", "'ordered' has no column 'price'")
    ]
