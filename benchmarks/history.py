"""`tidegate.detect` of a DataFrame: two rules of different keys over 1M changes, against the sum of
what it cannot do without: an identity `applyInArrow` of the same rows, sent once for each key, and
the detector over the same rows in a table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tidegate
from benchmarks.figure import Figure, median_seconds

ROWS, KEYS, ACCOUNTS, PARTS = 1_000_000, 10_000, 7_001, 2
ROUNDS = 3
TARGET = 1.3
BOOK = """
rulebook: history
events: {a: {signal: {k: bigint, m: bigint}}, b: {signal: {k: bigint, m: bigint}}}
rules:
  pair: {on: a ; b within 60 s, per: k}
  again: {on: a ; b ; a within 60 s, per: m}
"""


def changes(spark: SparkSession, folder: Path, rows: int) -> DataFrame:
    """As many changes of two kinds, ten thousand a second, in files."""
    made = spark.range(rows, numPartitions=4).select(
        F.when(F.xxhash64("id") % 2 == 0, "a").otherwise("b").alias("event"),
        (F.col("id") * 100).alias("time"),
        F.pmod(F.xxhash64("id", F.lit(1)), F.lit(KEYS)).alias("k"),
        F.pmod(F.xxhash64("id", F.lit(2)), F.lit(ACCOUNTS)).alias("m"),
        "id",
    )
    made.write.mode("overwrite").parquet(str(folder))
    return spark.read.parquet(str(folder))


def run(spark: SparkSession, folder: Path, rows: int = ROWS) -> Figure:
    """Medians of rounds that take turns."""
    frame = changes(spark, folder, rows)
    table = frame.toArrow()

    def identity() -> None:
        """Each row goes to a part of its k, and to one of its m."""
        places = F.array(*(F.pmod(F.xxhash64(c), F.lit(PARTS)).cast("int") for c in ("k", "m")))
        cut = frame.select("*", F.explode(places).alias("part")).repartitionById(PARTS, "part")
        same = cut.groupBy("part").applyInArrow(_same, cut.schema)
        same.write.format("noop").mode("overwrite").save()

    def in_table() -> None:
        tidegate.detect(BOOK, table, id="id")

    def in_frame() -> None:
        found = tidegate.detect(BOOK, frame, id="id")
        found.write.format("noop").mode("overwrite").save()

    for once in (identity, in_table, in_frame):
        once()
    taken = {name: list[float]() for name in ("identity", "table", "frame")}
    for _ in range(ROUNDS):
        for name, once in (("identity", identity), ("table", in_table), ("frame", in_frame)):
            taken[name].append(median_seconds([once]))
    seconds = {name: sorted(times)[ROUNDS // 2] for name, times in taken.items()}
    ratio = seconds["frame"] / (seconds["identity"] + seconds["table"])
    numbers = {f"{name}_us_a_row": 1e6 * value / rows for name, value in seconds.items()}
    return Figure("a history in Spark / its parts", ratio, TARGET, numbers)


def _same(rows: pa.Table) -> pa.Table:
    return rows
