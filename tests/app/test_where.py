"""A `where` between constituents, by an engine on real Delta tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.lake import Shop
from tidegate.engine.control.firings import list_firings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOOK = """\
rulebook: shop
tables:
  orders: {path: ./orders, key: [id]}
  log: {path: ./log}
events:
  ordered: {on: insert, table: orders}
rules:
  growing:
    on: "(first: (ordered) ; more: (ordered)) within 1 h"
    context: chronicle
    where: more.amount > 1.1 * first.amount
    do:
      - sql: INSERT INTO log SELECT 'growing', min(id), max(id) FROM event GROUP BY firing_id
  grown:
    on: "(first: (ordered) ; more: (ordered)) within 1 h"
    context: chronicle
    if: max(amount) > 1.1 * min(amount)
    do:
      - sql: INSERT INTO log SELECT 'grown', min(id), max(id) FROM event GROUP BY firing_id
"""


@pytest.mark.long
def test_a_pair_of_which_it_is_false_uses_nothing_up(spark: SparkSession, tmp_path: Path) -> None:
    """Each order is a bucket of an engine of its own, so what waits goes through the store. In
    `chronicle` the pair (1, 2) comes first: an `if` is asked of it, and it is used up."""
    shop = Shop(spark, tmp_path)
    shop.book.write_text(BOOK)
    shop.create("orders", "id BIGINT, amount BIGINT")
    shop.create("log", "rule STRING, id BIGINT, amount BIGINT")
    shop.run_once()
    for id_, amount in enumerate((100, 105, 120, 116), start=1):
        shop.order((id_, amount))
        shop.run_once()
    assert shop.logged() == {("growing", 1, 3): 1, ("growing", 2, 4): 1}
    grown = [f["condition"] for f in list_firings(shop.store, "shop") if f["rule"] == "grown"]
    assert grown == ["failed"] * 2
