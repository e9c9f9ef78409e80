"""What a run on Delta tables records: a firing leads to the commits that caused it and to the one
that it caused, and that commit back to the firing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.lake import Shop
from tidegate.engine.control.firings import list_firings
from tidegate.engine.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOOK = """\
rulebook: shop
tables: {orders: {path: ./orders, key: [id]}, log: {path: ./log}}
events: {ordered: {on: insert, table: orders}, closed: {signal: {id: bigint}}}
rules:
  late:
    on: ordered ; closed
    do: [{sql: "INSERT INTO log SELECT 'late', id, amount FROM event"}]
"""


def test_g16_a_firing_leads_to_its_commits_and_its_commit_back_to_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = Shop(spark, tmp_path)
    shop.book.write_text(BOOK)
    shop.create("orders", "id BIGINT, amount BIGINT")
    shop.create("log", "rule STRING, id BIGINT, amount BIGINT")
    shop.run_once()
    shop.order((1, 10))
    shop.order((2, 20))
    shop.run_once()  # another process carries the order on
    with shop.engine() as engine:
        engine.signal("closed", {"id": 7}, id="k-19")
        engine.run_once()
    (firing,) = list_firings(shop.store, "shop")
    with open_store(shop.store, create=False) as store:
        record = store.of("shop").recorded.firing(firing["firing_id"])
    assert record is not None
    came = [(one["event"], one["version"], one["signal"]) for one in record["constituents"]]
    orders = shop.sql("DESCRIBE HISTORY {orders} LIMIT 1")[0]
    assert came == [("ordered", orders.version, None), ("closed", None, "k-19")]
    (entry,) = record["entries"]
    commit = shop.sql("DESCRIBE HISTORY {log} LIMIT 1")[0]
    assert (entry["table"], entry["version"], entry["rows"]) == ("log", commit.version, 2)
    said = json.loads(commit.userMetadata)
    assert said["why"] == f"tidegate why {firing['firing_id']}"
    assert said["tidegate"]["entry"] == entry["number"]
    assert entry["begun_at"] <= entry["settled_at"]
