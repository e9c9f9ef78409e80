"""A bucket of 1,000 changes under ten rules with an `if`: expressions of the closed list (G30)
against the same ten behind a function that only Spark has."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks import lake
from benchmarks.figure import Figure, rulebook

RULES, ROWS = 10, 1_000
LISTED, BY_SPARK = "sum(amount) > {n}", "nullif(sum(amount), 0) > {n}"


def seconds(spark: SparkSession, folder: Path, name: str, condition: str) -> float:
    """The median of five buckets, after one of warming up."""
    changes = folder / name
    lake.create(spark, changes, "id BIGINT, amount DOUBLE")
    rules = "".join(
        f"  r{n}: {{on: added, if: '{condition.format(n=n * 100)}'}}\n" for n in range(RULES)
    )
    file = rulebook(
        folder,
        f"conditions_{name}",
        f'tables:\n  changes: {{path: "{changes}"}}\n'
        f"events:\n  added: {{on: insert, table: changes}}\nrules:\n{rules}",
    )
    rows = spark.range(ROWS, numPartitions=1).selectExpr("id", "double(id) AS amount")
    return lake.bucket_seconds(spark, file, rows, changes)


def run(spark: SparkSession, folder: Path) -> Figure:
    """Listed conditions against Spark's."""
    seconds(spark, folder / "warm", "warm", LISTED)
    listed, by_spark = (
        seconds(spark, folder, name, text)
        for name, text in (("listed", LISTED), ("spark", BY_SPARK))
    )
    numbers = {"listed_seconds": listed, "by_spark_seconds": by_spark}
    return Figure("ten conditions: listed / by Spark", listed / by_spark, 0.6, numbers)
