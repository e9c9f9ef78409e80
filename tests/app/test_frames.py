"""`tidegate.detect` of a Spark DataFrame finds what it finds in a table."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tidegate
from tests.detect.test_keyed_history import lines
from tidegate.engine.detect import keyed_history
from tidegate.rules.errors import InputError

BOOK = """
rulebook: b
tables: {t: {path: /t}}
events:
  a: {signal: {k: bigint, v: bigint}}
  b: {signal: {k: bigint, v: bigint}}
  bell: {signal: {}}
  hour: {at: "<(*:00:00)*/*/*>"}
rules:
  pair: {on: a ; b within 1 h, per: k}
  pairs: {on: pair ; pair, per: k, context: chronicle}
  other: {on: a ; b ; a within 1 h, per: v}
  late: {on: "not(b)[a, [5 min]]", per: k}
  rung: {on: a ; bell, per: k}
  hourly: {on: hour ; a, per: v}
  bells: {on: bell}
settings: {driver_rows_max: 10}
"""
HOUR = 3_600_000_000


@pytest.fixture
def session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """Its workers run the Python that runs the tests."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    monkeypatch.setattr(keyed_history, "PART_ROWS_MIN", 500)
    return spark


def history(count: int) -> pa.Table:
    """As many changes, and two bells."""
    rng = np.random.default_rng(7)
    time = np.sort(rng.integers(0, 12 * HOUR, count))
    of_keys = pa.table(
        {
            "event": pa.array(rng.choice(["a", "b"], count)),
            "time": time,
            "k": rng.integers(0, count // 20, count),
            "v": rng.integers(0, count // 30, count),
            "id": [f"row {n}" for n in range(count)],
        }
    )
    bells = {"event": ["bell"] * 2, "time": [3 * HOUR, 9 * HOUR], "id": ["one", "two"]}
    return pa.concat_tables([of_keys, pa.table(bells)], promote_options="default")


@pytest.mark.parametrize("count", [2_000, pytest.param(400_000, marks=pytest.mark.long)])
def test_a_dataframe_is_detected_as_a_table_is(session: SparkSession, count: int) -> None:
    rows = history(count)
    frame = session.createDataFrame(rows).withColumn("time", F.timestamp_micros("time"))
    found = tidegate.detect(BOOK, frame, id="id")
    assert isinstance(found, DataFrame)
    table, whole = found.toArrow(), tidegate.detect(BOOK, rows, id="id")
    assert {*whole.column("rule").to_pylist()} == {
        "pair", "pairs", "other", "late", "rung", "hourly", "bells",
    }  # fmt: skip
    assert table.column_names == whole.column_names
    assert lines(table) == lines(whole)
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert plan.count("Exchange") == 1  # each row is sent once


def test_what_is_wrong_with_a_frame_is_said(session: SparkSession) -> None:
    rows = history(600)
    frame = session.createDataFrame(rows)
    with pytest.raises(InputError, match="`id` is not given"):
        tidegate.detect(BOOK, frame)
    with pytest.raises(InputError, match="lack the column time"):
        tidegate.detect(BOOK, frame.drop("time"), id="id")
    with pytest.raises(InputError, match="column event is int32, not string"):
        tidegate.detect(BOOK, frame.withColumn("event", F.lit(1)), id="id")
    with pytest.raises(InputError, match="unknown event 'c'"):
        tidegate.detect(BOOK, frame.withColumn("event", F.lit("c")), id="id")
    with pytest.raises(InputError, match="cannot be null"):
        tidegate.detect(BOOK, frame.withColumn("time", F.lit(None).cast("bigint")), id="id")
    unkeyed = BOOK.replace("{on: bell}", "{on: bell ; a}")
    with pytest.raises(InputError, match=r"rows of a, bell would be collected, at most 10 .*bells: "
                                         "it has no `per:`"):  # fmt: skip
        tidegate.detect(unkeyed, frame, id="id")


def test_a_frame_without_rows_has_no_detections(session: SparkSession) -> None:
    frame = session.createDataFrame(history(40)).where("false")
    found = tidegate.detect(BOOK, frame, id="id").toArrow()
    assert (len(found), found.column_names[:3]) == (0, ["rule", "k", "v"])
