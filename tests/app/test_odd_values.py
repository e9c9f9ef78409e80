"""Values and names that are rare and allowed, through the whole engine on real Delta tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tidegate import Engine
from tidegate.engine.control.firings import FiringFilter, list_firings
from tidegate.rules.errors import EngineError, InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ON = "'delta.enableChangeDataFeed' = 'true', 'delta.enableInCommitTimestamps' = 'true'"
BOOK = """\
rulebook: odd
tables:
  rows: {path: ./rows, key: ["a.b`c", day, at]}
  log: {path: ./log}
events:
  came: {on: insert, table: rows, where: "`a.b``c` rlike '.*' and day is not null"}
  raised: {on: insert, table: rows, where: 1 / n > 0}
  told: {signal: {text: string, many: array<string>}}
rules:
  each:
    on: came
    per: [day, at, local, "a.b`c"]
    if: max(`a.b``c`) is not null
    for_each: firing
    do:
      - sql: |
          INSERT INTO log (day, at, local, name)
          SELECT :day, :at, :local, max(`a.b``c`) FROM event
  zero: {on: raised, do: [{sql: INSERT INTO log (name) SELECT 'raised' FROM event}]}
"""
LEAST = "timestamp_micros(-9223372036854775807)"
OLD = "timestamp_micros(-9220000000000000000)"
VALUES = [
    f"(1, 'x', date'-0044-03-15', {OLD}, timestamp_ntz'-0044-03-15 01:02:03.5')",
    "(1, 'y', date'+10000-01-01', timestamp'+290000-12-31 00:00:00Z', "
    "timestamp_ntz'+10000-01-01 00:00:00')",
    "(0, 'z', date'1500-02-28', timestamp'1500-02-28 00:00:00Z', timestamp_ntz'0001-01-01')",
]


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables, once: tests work on copies."""
    folder = tmp_path_factory.mktemp("odd")
    columns = "day DATE, at TIMESTAMP, local TIMESTAMP_NTZ"
    spark.sql(
        f"CREATE TABLE delta.`{folder}/rows` (n INT, `a.b``c` STRING, {columns}) USING delta "
        f"TBLPROPERTIES ({ON}, 'delta.columnMapping.mode' = 'name')"
    )
    spark.sql(f"CREATE TABLE delta.`{folder}/log` (name STRING, {columns}) USING delta")
    (folder / "odd.yaml").write_text(BOOK)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "odd"))


def test_dates_beyond_pythons_and_a_name_with_signs_pass_through(
    spark: SparkSession, folder: Path
) -> None:
    store = f"sqlite:///{folder}/odd.db"
    with Engine(folder / "odd.yaml", spark=spark, store=store) as engine:
        engine.run_once()
        spark.sql(f"INSERT INTO delta.`{folder}/rows` VALUES {', '.join(VALUES)}")
        engine.run_once()
    text = "cast(day AS STRING) AS day, cast(at AS STRING) AS at, cast(local AS STRING) AS local"
    same = [
        sorted(
            tuple(row)
            for row in spark.sql(f"SELECT {name}, {text} FROM delta.`{folder}/{of}`").collect()
            if row[1] is not None
        )
        for name, of in (("`a.b``c`", "rows"), ("name", "log"))
    ]
    assert same[0] == same[1]
    fired: list[Any] = list(list_firings(store, None, FiringFilter("each")))
    keys = {f["key"]["a.b`c"]: f["key"] for f in fired}
    assert keys["x"]["day"] == "-0044-03-15"
    assert keys["x"]["at"] == "-290201-10-31T00:53:20Z"
    assert keys["x"]["local"] == "-0044-03-15T01:02:03.500000"
    assert (keys["y"]["day"], keys["y"]["at"]) == ("+10000-01-01", "+290000-12-31T00:00:00Z")
    assert keys["z"]["day"] == "1500-02-28"
    assert json.dumps(fired)


@pytest.mark.long
def test_half_a_pair_is_refused_and_a_time_that_the_feed_cannot_read_stops_by_name(
    spark: SparkSession, folder: Path
) -> None:
    with Engine(folder / "odd.yaml", spark=spark) as engine:
        for fields in ({"text": "a\ud800"}, {"many": ["ok", "\udfff"]}):
            with pytest.raises(InputError, match="is to be"):
                engine.signal("told", fields)
        with pytest.raises(InputError, match="cannot be a signal's id"):
            engine.signal("told", text="a", id="\ud800")
        engine.run_once()
        row = f"(1, 'x', date'2024-01-01', {LEAST}, timestamp_ntz'2024-01-01')"
        spark.sql(f"INSERT INTO delta.`{folder}/rows` VALUES {row}")
        with pytest.raises(EngineError, match="hold a time so old") as caught:
            engine.run_once()
    assert "reset rows --from" in caught.value.hint
