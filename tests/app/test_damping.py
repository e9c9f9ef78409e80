"""Damping on real Spark and Delta: an alarm above 80, armed again below 70."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.lake import Shop
from tidegate.engine.control.firings import list_firings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BOOK = """\
rulebook: shop
tables: {orders: {path: ./orders, key: [id]}, log: {path: ./log}}
events: {read: {on: insert, table: orders}}
rules:
  over:
    on: read
    per: id
    if: min(amount) >= 0
    hysteresis: {fire: max(amount) > 80, rearm: max(amount) < 70 AND detected_at IS NOT NULL}
    do: [{sql: "INSERT INTO log (rule, id, amount) SELECT 'over', id, amount FROM event"}]
  later:
    on: read
    per: id
    coupling: detached
    hysteresis: {fire: max(amount) > 80, rearm: max(amount) < 70}
    dedupe: {by: [amount], within: 1 d}
    do: [{sql: "INSERT INTO log (rule, id, amount) SELECT 'later', id, amount FROM event"}]
"""


@pytest.mark.long
def test_an_alarm_is_raised_once_until_its_level_was_low_again_over_restarts(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = Shop(spark, tmp_path)
    shop.book.write_text(BOOK)
    shop.create("orders", "id BIGINT, amount BIGINT")
    shop.create("log", "rule STRING, id BIGINT, amount BIGINT")
    with shop.engine() as engine:
        engine.run_once()
        for level in (75, 85):
            shop.order((1, level))
        assert sum(r.damped for r in engine.run_once()) == 1  # 75; `later` is asked later
    with shop.engine() as engine:  # another engine: it is not armed
        for level in (90, -1, 75, 69):
            shop.order((1, level))
        shop.order((2, 95))
        engine.run_once()
    with shop.engine() as engine:
        shop.order((1, 85))
        shop.order((2, 96))
        engine.run_once()
        assert shop.logged() == Counter(
            [("over", 1, 85), ("over", 2, 95), ("over", 1, 85), ("later", 1, 85), ("later", 2, 95)]
        )
        found = [*list_firings(shop.store, "shop")]
    dropped = Counter((f["rule"], f["key"]["id"], f.get("damped")) for f in found)
    assert dropped == {
        ("over", 1, None): 3,  # one of them failed its `if`
        ("over", 1, "hysteresis"): 4,
        ("over", 2, None): 1,
        ("over", 2, "hysteresis"): 1,
        ("later", 1, None): 1,
        ("later", 1, "hysteresis"): 5,
        ("later", 1, "dedupe"): 1,
        ("later", 2, None): 1,
        ("later", 2, "hysteresis"): 1,
    }
