"""Operators and contexts live: signals in, a row a firing out."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAD = """\
rulebook: live
tables: {log: {path: ./log}}
events:
  a: {signal: {k: bigint}}
  b: {signal: {k: bigint}}
  c: {signal: {k: bigint}}
rules:
"""
RULE = """\
  {name}:
    on: {on}
    per: k
    context: {context}
    do:
      - sql: |
          INSERT INTO log
          SELECT '{name}', max(k), count(event_type) FROM event GROUP BY firing_id
"""
HISTORY = "aabcac"
EXPECTED = {  # rule: expression, context, constituents of each firing over the history
    "negated": ("not(b)[a, c]", "restricted", [2]),
    "closed": ("A*(a, b, c)", "restricted", [1, 0]),
    "within_window": ("A(a, b, c)", "restricted", [1]),
    "counted": ("every(2, a)", "restricted", [2]),
    "second": ("a[2]", "restricted", [1]),
    "repeated": ("any(2, a*)", "restricted", [2, 2]),
    "last": ("a ; c", "restricted", [2, 2]),
    "recent": ("a ; c", "recent", [2, 2]),
    "chronicle": ("a ; c", "chronicle", [2, 2]),
    "continuous": ("a ; c", "continuous", [2, 2, 2]),
    "cumulative": ("a ; c", "cumulative", [3, 2]),
    "unrestricted": ("a ; c", "unrestricted", [2] * 5),
}


def test_operators_and_contexts_fire_live(spark: SparkSession, tmp_path: Path) -> None:
    log = f"delta.`{tmp_path}/log`"
    spark.sql(f"CREATE TABLE {log} (rule STRING, k BIGINT, n BIGINT) USING delta")
    file = tmp_path / "live.yaml"
    file.write_text(
        HEAD
        + "".join(
            RULE.format(name=name, on=on, context=context)
            for name, (on, context, _) in EXPECTED.items()
        )
    )
    with Engine(file, spark=spark) as engine:
        engine.run_once()
        for half in (HISTORY[:3], HISTORY[3:]):
            for event in half:
                engine.signal(event, k=1)
                time.sleep(0.002)  # signals of one millisecond are simultaneous
            engine.run_once()
    found = Counter(tuple(row) for row in spark.sql(f"SELECT * FROM {log}").collect())
    assert found == Counter((rule, 1, n) for rule, (_, _, sizes) in EXPECTED.items() for n in sizes)


CHAINED = """\
rulebook: live
tables: {log: {path: ./log}}
events:
  a: {signal: {k: bigint, v: bigint}}
  b: {signal: {k: bigint}}
rules:
  pair: {on: a ; b, per: k, context: chronicle, if: sum(v) > 100}
  two_pairs:
    on: any(2, pair*)
    per: {pair: k}
    do:
      - sql: |
          INSERT INTO log
          SELECT 'two_pairs', max(k), count(DISTINCT v) FROM event GROUP BY firing_id
  all_keys:
    on: every(2, two_pairs)
    do:
      - sql: INSERT INTO log SELECT 'all_keys', max(k), count(*) FROM event GROUP BY firing_id
"""


def test_s08_rules_as_events_fire_live(spark: SparkSession, tmp_path: Path) -> None:
    log = f"delta.`{tmp_path}/log`"
    spark.sql(f"CREATE TABLE {log} (rule STRING, k BIGINT, n BIGINT) USING delta")
    file = tmp_path / "live.yaml"
    file.write_text(CHAINED)
    with Engine(file, spark=spark) as engine:
        engine.run_once()
        for v, k in enumerate((1, 2, 1, 2)):
            engine.signal("a", k=k, v=v)
            engine.run_once()
            engine.signal("b", k=k)
        engine.run_once()
    found = Counter(tuple(row) for row in spark.sql(f"SELECT * FROM {log}").collect())
    assert found == Counter([("two_pairs", 1, 2), ("two_pairs", 2, 2), ("all_keys", 2, 8)])


EDGES = """\
rulebook: live
tables:
  accounts: {path: ./accounts, key: id}
  log: {path: ./log}
events:
  changed: {on: update, table: accounts, where: new.balance <> old.balance}
  asked: {signal: {id: bigint, owner: string}}
rules:
  both:
    on: begin_of changed and end_of changed
    per: {changed: id}
    do:
      - sql: INSERT INTO log SELECT 'both', id, balance, event_type, old.balance FROM event
  before:
    on: begin_of changed ; asked
    per: {changed: [owner, id], asked: [owner, id]}
    do:
      - sql: |
          INSERT INTO log SELECT 'before', id, balance, owner, NULL FROM event
          WHERE event_type = 'changed'
"""


def test_s10_edges_of_an_update_fire_live(spark: SparkSession, tmp_path: Path) -> None:
    accounts, log = (f"delta.`{tmp_path}/{name}`" for name in ("accounts", "log"))
    spark.sql(
        f"CREATE TABLE {accounts} (id BIGINT, owner STRING, balance BIGINT) USING delta "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', "
        "'delta.enableInCommitTimestamps' = 'true')"
    )
    spark.sql(
        f"CREATE TABLE {log} (rule STRING, id BIGINT, n BIGINT, what STRING, old BIGINT) "
        "USING delta"
    )
    spark.sql(f"INSERT INTO {accounts} VALUES (1, 'ann', 10), (2, 'bob', 20)")
    file = tmp_path / "live.yaml"
    file.write_text(EDGES)
    with Engine(file, spark=spark) as engine:
        engine.run_once()
        spark.sql(f"UPDATE {accounts} SET owner = 'eve', balance = balance + id - 1")
        engine.run_once()
        for owner in ("bob", "eve"):
            engine.signal("asked", {"owner": owner, "id": 2})
            engine.run_once()
    found = Counter(tuple(row) for row in spark.sql(f"SELECT * FROM {log}").collect())
    assert found == Counter(
        [
            ("both", 2, 20, "changed", None),
            ("both", 2, 21, "changed", 20),
            ("before", 2, 20, "bob", None),
        ]
    )
