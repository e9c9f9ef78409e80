"""A `where` between constituents, by an engine on real Delta tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.lake import Shop

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
  {name}:
    on: "(first: (ordered) ; more: (ordered)) within 1 h"
    context: chronicle
    {asked}: {condition}
    do:
      - sql: INSERT INTO log SELECT '{name}', min(id), max(id) FROM event GROUP BY firing_id
"""


@pytest.mark.parametrize(
    ("asked", "condition", "found"),
    [
        ("where", "more.amount > 1.1 * first.amount", [(1, 3), (2, 4)]),
        ("if", "max(amount) > 1.1 * min(amount)", []),
    ],
)
def test_a_pair_of_which_it_is_false_uses_nothing_up(
    spark: SparkSession,
    tmp_path: Path,
    asked: str,
    condition: str,
    found: list[tuple[int, int]],
) -> None:
    """Each order is a bucket of an engine of its own, so what waits goes through the store. In
    `chronicle` the pair (1, 2) comes first: an `if` is asked of it, and it is used up."""
    shop = Shop(spark, tmp_path)
    book = BOOK.replace("{name}", "growing").replace("{asked}", asked)
    shop.book.write_text(book.replace("{condition}", condition))
    shop.create("orders", "id BIGINT, amount BIGINT")
    shop.sql("CREATE TABLE {log} (rule STRING, id BIGINT, amount BIGINT) USING delta")
    shop.run_once()
    for id_, amount in enumerate((100, 105, 120, 116), start=1):
        shop.order((id_, amount))
        shop.run_once()
    assert shop.logged() == {("growing", *pair): 1 for pair in found}
