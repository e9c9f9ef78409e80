"""Data with fixed seeds: tables of changes, in commits of known size."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.figure import median_seconds
from tidegate import Engine

COMMIT_ROWS = 100_000
ROUNDS = 5
KEYS = 10_000
FEED = "delta.enableChangeDataFeed = true, delta.enableInCommitTimestamps = true"


def create(spark: SparkSession, table: Path, columns: str) -> None:
    """An empty Delta table with its change feed on; version 0."""
    spark.sql(f"CREATE TABLE delta.`{table}` ({columns}) USING delta TBLPROPERTIES ({FEED})")


def changes(spark: SparkSession, table: Path, commits: int) -> None:
    """Versions 1 to `commits`, each 100,000 inserts over 10,000 keys; one row in a hundred is a
    `b`, all others an `a`."""
    create(spark, table, "k BIGINT, kind STRING, amount DOUBLE")
    for commit in range(commits):
        rows = spark.range(COMMIT_ROWS, numPartitions=1).selectExpr(
            f"pmod(xxhash64(id, {commit}, 1), {KEYS}) AS k",
            f"if(pmod(xxhash64(id, {commit}, 2), 100) = 0, 'b', 'a') AS kind",
            f"pmod(xxhash64(id, {commit}, 3), 1000) / 10.0D AS amount",
        )
        rows.write.format("delta").mode("append").save(str(table))


def commit_micros(table: Path, version: int) -> int:
    """When the log file of a version was written, in microseconds since the epoch."""
    return log_file(table, version).stat().st_mtime_ns // 1000


def log_file(table: Path, version: int) -> Path:
    """Where the log of a version stands, or will stand."""
    return table / "_delta_log" / f"{version:020}.json"


def head(table: Path) -> int:
    """The latest version."""
    return max(int(file.stem) for file in (table / "_delta_log").glob("*[0-9].json"))


def bucket_seconds(spark: SparkSession, file: Path, rows: DataFrame, table: Path) -> float:
    """The median of five buckets of a rulebook, after one of warming up: each takes `rows`, which
    are appended to the table."""
    times = []
    with Engine(file, spark=spark, store=f"sqlite:///{file.with_suffix('.db')}") as engine:
        engine.run_once()
        for number in range(ROUNDS + 1):
            rows.write.format("delta").mode("append").save(str(table))
            taken = median_seconds([engine.run_once])
            if number:
                times.append(taken)
    return sorted(times)[len(times) // 2]
