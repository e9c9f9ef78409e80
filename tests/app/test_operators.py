"""Operators, contexts, rules as events and edges of updates live: signals and rows in, firings
out."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.lake import Lake
from tidegate import Engine
from tidegate.engine.control.firings import list_firings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

HEAD = """\
rulebook: live
tables:
  accounts: {path: ./accounts, key: id}
  log: {path: ./log}
events:
  a: {signal: {k: bigint, v: bigint}}
  b: {signal: {k: bigint}}
  c: {signal: {k: bigint}}
  changed: {on: update, table: accounts, where: new.balance <> old.balance}
  asked: {signal: {id: bigint, owner: string}}
rules:
  pair: {on: a ; b, per: k, context: chronicle, if: sum(v) > 100}
  two_pairs:
    on: any(2, pair*)
    per: {pair: k}
    do:
      - sql: |
          INSERT INTO log (rule, id, n)
          SELECT 'two_pairs', max(k), count(DISTINCT v) FROM event GROUP BY firing_id
  all_keys:
    on: every(2, two_pairs)
    do:
      - sql: |
          INSERT INTO log (rule, id, n)
          SELECT 'all_keys', max(k), count(*) FROM event GROUP BY firing_id
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
EXPECTED = {  # rule: expression, context, constituents of each firing over the history of one key
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
# The history of key 1, and two pairs of each of two other keys; a bucket ends in the midst of both.
HISTORY = ["a1 a1 b1 a11 b11 a12", "b12 c1 a1 c1 a11 b11 a12 b12"]


@pytest.mark.long
def test_s08_s10_operators_rules_as_events_and_edges_fire_live(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(spark, tmp_path)
    lake.create("accounts", "id BIGINT, owner STRING, balance BIGINT")
    lake.create("log", "rule STRING, id BIGINT, n BIGINT, what STRING, old BIGINT")
    lake.append("accounts", (1, "ann", 10), (2, "bob", 20))
    file = tmp_path / "live.yaml"
    rules = (f"{n}: {{on: '{on}', per: k, context: {c}}}" for n, (on, c, _) in EXPECTED.items())
    file.write_text(HEAD + "".join(f"  {rule}\n" for rule in rules))
    with Engine(file, spark=spark) as engine:
        engine.run_once()
        lake.sql("UPDATE {accounts} SET owner = 'eve', balance = balance + id - 1")
        for number, (history, owner) in enumerate(zip(HISTORY, ("bob", "eve"), strict=True)):
            for v, (event, *key) in enumerate(history.split(), start=10 * number):
                engine.signal(event, {"k": int("".join(key)), **({"v": v} if event == "a" else {})})
                time.sleep(0.002)  # signals of one millisecond are simultaneous
            engine.signal("asked", {"owner": owner, "id": 2})
            engine.run_once()
    assert lake.rows("log") == Counter(
        [
            ("two_pairs", 11, 2, None, None),
            ("two_pairs", 12, 2, None, None),
            ("all_keys", 12, 8, None, None),
            ("both", 2, 20, "changed", None),
            ("both", 2, 21, "changed", 20),
            ("before", 2, 20, "bob", None),
        ]
    )
    fired: list[Any] = list(list_firings(f"sqlite:///{tmp_path / 'live.db'}", None))
    of_one = [f for f in fired if f["rule"] in EXPECTED and f["key"] == {"k": 1}]
    sizes = Counter((f["rule"], len(f["constituents"])) for f in of_one)
    assert sizes == Counter((r, n) for r, (_, _, ns) in EXPECTED.items() for n in ns)
