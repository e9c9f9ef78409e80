"""What fired live on Delta tables fires in a backtest, under the same ids."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.lake import Shop
from tidegate import backtest
from tidegate.engine.control.firings import list_firings

BOOK = """\
rulebook: shop
tables: {orders: {path: ./orders, key: [id]}, moves: {path: ./moves}, log: {path: ./log}}
events:
  placed: {on: insert, table: orders, where: amount > 20}
  changed: {on: update, table: orders, of: [amount]}
  moved: {on: insert, table: moves}
  noted: {on: insert, table: log}
  large: {signal: {k: bigint}}
rules:
  pair: {on: placed ; moved, per: k, do: [{sql: INSERT INTO log SELECT max(k) FROM event}]}
  none: {on: "not(moved)[placed, [2 s]]", per: k}
  high: {on: placed, per: k, if: max(amount) > 50, do: [{signal: {large: {k: k}}}]}
  heard: {on: large ; changed, per: k, context: chronicle}
  wrote: {on: noted ; moved, per: k}
  asked:
    on: moved and placed
    per: k
    coupling: immediate
    if: {sql: SELECT firing_id FROM event JOIN log ON event.k = log.k}
"""


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_a_backtest_over_what_ran_live_has_the_same_firings(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    shop, drawn = Shop(spark, tmp_path), random.Random(seed)
    shop.create("orders", "id BIGINT, k BIGINT, amount BIGINT")
    shop.create("moves", "id BIGINT, k BIGINT")
    shop.create("log", "k BIGINT")
    shop.book.write_text(BOOK)
    shop.run_once()
    with shop.engine() as engine:
        for number in range(40):
            k, amount = drawn.randrange(3), drawn.randrange(100)
            match drawn.randrange(5):
                case 0 | 1:
                    shop.order((number, k, amount))
                case 2 | 3:
                    shop.append("moves", (number, k), (-number, k))
                case _:
                    shop.sql(f"UPDATE {{orders}} SET amount = {amount} WHERE k = {k}")
            if drawn.random() < 0.5:
                engine.run_once()
        for _ in range(3):
            engine.run_once()
    live = [*list_firings(shop.store, "shop")]
    end = max(one["end"] for one in live)
    found = backtest(shop.book, "orders@1", end, store=shop.store, warm_up="1 h", spark=spark)
    same = found.firings.select(["firing_id", "condition"]).to_pylist()
    assert len(live) >= 40, "so many firings were compared"
    assert {one["rule"] for one in live} == {rule.name for rule in found.rules}
    assert {(one["firing_id"], one["condition"]) for one in live} == {
        (one["firing_id"], one["condition"]) for one in same
    }
