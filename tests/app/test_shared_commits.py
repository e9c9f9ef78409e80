"""Effects of several rules in one commit, from the rulebook to `why` (G16)."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.lake import Shop, notes_of
from tidegate.engine.replay.why.ask import why_commit
from tidegate.engine.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BOOK = """\
rulebook: shop
settings: {dead_in_a_row_max: 100}
tables: {orders: {path: ./orders, start: earliest}, log: {path: ./log}}
events: {ordered: {on: insert, table: orders}}
rules:
  plain:
    on: ordered
    do:
      - INSERT INTO log SELECT 'plain', id FROM event
  pair:
    on: ordered
    do:
      - INSERT INTO log SELECT 'pair', id FROM event UNION ALL SELECT 'pair', -id FROM event
  none:
    on: ordered
    do:
      - INSERT INTO log SELECT 'none', id FROM event WHERE id > 1000
  strict:
    on: ordered
    retry: {attempts: 1}
    do:
      - INSERT INTO log SELECT 'strict', 10 - id FROM event
  each:
    on: ordered
    per: id
    for_each: firing
    do:
      - INSERT INTO log SELECT 'each', id FROM event
"""


def commits(shop: Shop) -> dict[int, list[tuple[str, int]]]:
    """Rule and number of the entry in each note of the engine's commits to the log, by version."""
    found = {}
    for file in sorted((shop.folder / "log" / "_delta_log").glob("*.json")):
        notes = notes_of(json.loads(file.read_text().splitlines()[0])["commitInfo"])
        if any("sealed" not in note for note in notes):
            found[int(file.stem)] = sorted((note["rule"], note["entry"]) for note in notes)
    return found


@pytest.mark.long
def test_g16_a_bucket_is_one_commit_and_of_several_only_what_breaks_a_constraint_is_dead(
    spark: SparkSession, tmp_path: Path
) -> None:
    shop = Shop(spark, tmp_path)
    shop.create("orders", "id BIGINT")
    shop.create("log", "what STRING, id BIGINT")
    shop.sql("ALTER TABLE {log} ADD CONSTRAINT few CHECK (id < 9)")
    shop.book.write_text(BOOK)
    shop.order((3,), (4,))
    with shop.engine() as engine:
        engine.run_once()
        [(version, notes)] = commits(shop).items()
        shop.order((1,))  # 10 - 1 breaks the constraint
        engine.run_once()
    assert [rule for rule, _ in notes] == ["each", "each", "none", "pair", "plain", "strict"]
    with open_store(shop.store, create=False) as store:
        behind = why_commit(store, "shop", f"log@{version}")["entries"]
    assert sorted((e["rule"], e["number"]) for e in behind) == notes
    assert {e["rule"]: e["rows"] for e in behind} == {
        "each": 1, "none": 0, "pair": 4, "plain": 2, "strict": 2,
    }  # fmt: skip
    alone = [notes for at, notes in commits(shop).items() if at > version]
    assert sorted(rule for notes in alone for rule, _ in notes) == ["each", "none", "pair", "plain"]
    assert shop.logged() == Counter(
        {
            **{(what, n): 1 for what in ("plain", "pair", "each") for n in (1, 3, 4)},
            **{("pair", -n): 1 for n in (1, 3, 4)},
            **{("strict", n): 1 for n in (6, 7)},
        }
    )
    assert (shop.status()["entries_pending"], shop.status()["entries_dead"]) == (0, 1)
