"""What conditions see and when actions run, on real Delta tables (G14, G15, G17)."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.lake import Shop, notes_of
from tidegate.engine.control.firings import list_firings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BELOW = (
    "SELECT e.firing_id FROM event e JOIN orders o ON o.id = e.id WHERE o.amount < 0 "
    "GROUP BY e.firing_id"
)
BALANCES = f"""\
rulebook: shop
tables: {{orders: {{path: ./orders, key: [id]}}, log: {{path: ./log}}}}
events: {{moved: {{on: update, table: orders}}}}
rules:
  now: {{on: moved, coupling: immediate, if: {{sql: {BELOW}}}, do: [{{sql: SAY now}}]}}
  after: {{on: moved, if: {{sql: {BELOW}}}, do: [{{sql: SAY after}}]}}
  later: {{on: moved, coupling: detached, if: {{sql: {BELOW}}}, do: [{{sql: SAY later}}]}}
  last: {{on: moved, coupling: detached, if: max(amount) = 50, do: [{{sql: SAY last}}]}}
"""


def commits(shop: Shop) -> list[tuple[str, int]]:
    """The rule and the number of firings of each entry in the commits to the log, in order."""
    files = sorted((shop.folder / "log" / "_delta_log").glob("*.json"))
    infos = [json.loads(file.read_text().splitlines()[0])["commitInfo"] for file in files]
    return [(note["rule"], note["firings"]) for info in infos for note in notes_of(info)]


def a_shop(spark: SparkSession, folder: Path, text: str) -> Shop:
    """Orders 1 to 3 of amount 10, and an empty log."""
    shop = Shop(spark, folder)
    for name in ("now", "after", "later", "last", "high", "low", "a", "b"):
        said = f"INSERT INTO log SELECT ''{name}'', id, amount FROM event".replace("''", "'")
        text = text.replace(f"SAY {name}}}", f'"{said}"}}')
    shop.book.write_text(text)
    shop.create("orders", "id BIGINT, amount BIGINT")
    shop.create("log", "rule STRING, id BIGINT, amount BIGINT")
    shop.order((1, 10), (2, 10), (3, 10))
    return shop


@pytest.mark.long
def test_g14_immediate_sees_each_commit_deferred_and_detached_what_came_last(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Balances -5 and 50 in one bucket: only the immediate condition sees the -5."""
    shop = a_shop(spark, tmp_path, BALANCES)
    with shop.engine() as engine:
        engine.run_once()
        for amount in (-5, 50):
            shop.sql(f"UPDATE {{orders}} SET amount = {amount} WHERE id = 1")
        (report,) = engine.run_once()
        assert report.firings == 8
        assert shop.logged() == Counter([("now", 1, -5), ("last", 1, 50)])
        found = list_firings(shop.store, "shop")
        outcomes = Counter((f["rule"], f["condition"]) for f in found)
        assert outcomes == {
            ("now", "held"): 1,
            ("now", "failed"): 1,
            ("after", "failed"): 2,
            ("later", "failed"): 2,
            ("last", "held"): 1,
            ("last", "failed"): 1,
        }
        assert engine.obstacles() == ()


ORDERED = """\
rulebook: shop
tables: {orders: {path: ./orders, key: [id]}, log: {path: ./log}}
events: {ordered: {on: insert, table: orders}}
rules:
  a: {on: ordered, priority: 9, do: [{sql: SAY a}]}
  b: {on: ordered, per: id, precedes: a, do: [{sql: SAY b}]}
  told:
    on: end_of b
    per: id
    do: [{sql: "INSERT INTO log SELECT 'told', id, 0 FROM event"}]
  high: {on: ordered, coupling: immediate, priority: 1, do: [{sql: SAY high}]}
  low: {on: ordered, coupling: immediate, do: [{sql: SAY low}]}
"""


def test_g15_g23_immediate_ones_come_first_by_detection_then_rules_in_order_and_ends_are_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = a_shop(spark, tmp_path, ORDERED)
    with shop.engine() as engine:
        engine.run_once()
        shop.order((4, 1))
        shop.order((5, 1))
        engine.run_once()
        engine.run_once()
    assert shop.logged()["told", 4, 0] == shop.logged()["told", 5, 0] == 1
    one_commit = [("high", 1), ("low", 1)]
    assert commits(shop) == [*one_commit, *one_commit, ("b", 2), ("a", 2), ("told", 2)]


CROWD = """\
rulebook: shop
settings: {actions_in_parallel_max: 4}
tables: {orders: {path: ./orders, key: [id]}, log: {path: ./log}, sums: {path: ./sums}}
events: {ordered: {on: insert, table: orders}}
rules:
RULES
  sums:
    on: ordered
    do:
      - sql: >
          MERGE INTO sums s USING (SELECT count(*) AS n FROM event) e ON s.id = 0
          WHEN MATCHED THEN UPDATE SET n = s.n + e.n
  more:
    on: ordered
    coupling: detached
    do:
      - sql: >
          MERGE INTO sums s USING (SELECT count(*) AS n FROM event) e ON s.id = 0
          WHEN MATCHED THEN UPDATE SET n = s.n + e.n
"""


@pytest.mark.long
def test_g15_many_rules_write_a_table_at_once_and_each_effect_is_there_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Four at a time: appends side by side, a MERGE beside the detached one on the same row."""
    said = "INSERT INTO log SELECT 'r{0}', id, amount FROM event"
    rule = '  r{0}: {{on: ordered, do: [{{sql: "' + said + '"}}]}}'
    lines = "\n".join(map(rule.format, range(5)))
    shop = a_shop(spark, tmp_path, CROWD.replace("RULES", lines))
    shop.create("sums", "id BIGINT, n BIGINT")
    shop.append("sums", (0, 0))
    with shop.engine() as engine:
        engine.run_once()
        shop.order((4, 4), (5, 5))
        engine.run_once()
        assert engine.obstacles() == ()
    assert shop.logged() == {(f"r{r}", n, n): 1 for r in range(5) for n in (4, 5)}
    assert shop.rows("sums") == {(0, 4): 1}
    assert len(set(commits(shop))) == 5
