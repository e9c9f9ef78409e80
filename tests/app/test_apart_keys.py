"""Tables whose declared key Spark cannot order, read by executors (G11, G26)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.lake import Lake
from tidegate import Engine
from tidegate.engine.store import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BOOK = """\
rulebook: shop
tables:
  flat: {path: ./flat, key: [tags], start: earliest}
  deep: {path: ./deep, key: [id, of], start: earliest}
events:
  moved: {on: update, table: flat, of: [v]}
  came: {on: insert, table: flat}
  changed: {on: update, table: deep, of: [v]}
settings: {detect: HOW}
rules:
  pair: {on: came ; moved, per: k, context: chronicle, if: max(v) > 0}
  own: {on: changed, per: id, if: max(v) > max(old.v)}
"""


def test_g11_executors_pair_images_by_a_key_with_a_map_in_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    lake, found = Lake(spark, tmp_path), {}
    lake.create("flat", "tags MAP<STRING, INT>, k BIGINT, v DOUBLE")
    lake.create("deep", "id BIGINT, of STRUCT<a: ARRAY<MAP<STRING, INT>>>, v DOUBLE")
    lake.sql("INSERT INTO {flat} SELECT map('id', int(id), 'x', 1), id % 5, id FROM range(40)")
    lake.sql(
        "INSERT INTO {deep} "
        "SELECT id % 20, named_struct('a', array(map('n', int(id)))), id FROM range(40)"
    )
    for name in ("flat", "deep"):
        lake.sql(f"UPDATE {{{name}}} SET v = v + 1 WHERE v < 30")
    for how in ("driver", "spark"):
        book, url = tmp_path / f"{how}.yaml", f"sqlite:///{tmp_path / how}.db"
        book.write_text(BOOK.replace("HOW", how))
        with Engine(book, spark=spark, store=url) as engine:
            (report,) = engine.run_once()
        assert report.detected_by == ("executors" if how == "spark" else "driver")
        with open_store(url, create=False) as store:
            fired = store.of("shop").firings.listed()
            found[how] = sorted((f["rule"], f["firing_id"], str(f["constituents"])) for f in fired)
    assert found["spark"] == found["driver"]
    assert [rule for rule, *_ in found["spark"]] == ["own"] * 30 + ["pair"] * 30
