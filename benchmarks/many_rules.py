"""A bucket of 10,000 changes under 1 to 1,000 rules with 100 filters; one rule fires."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks import lake
from benchmarks.figure import Figure, rulebook

COUNTS = (1, 10, 100, 1000)
FILTERS = 100
ROWS = 10_000


def book(folder: Path, count: int, changes: Path, hits: Path) -> Path:
    """`count` rules; the first has filter 0 to itself, and only that filter finds rows."""
    filters = min(FILTERS, count)
    events = "".join(
        f"  e{n}: {{on: insert, table: changes, where: grade = {n} and amount >= {n}.5}}\n"
        for n in range(filters)
    )
    rules = "".join(
        f"  r{n}:\n    on: e{n if n < filters else 1 + n % (filters - 1)}\n"
        "    do:\n      - sql: INSERT INTO hits SELECT count(*) FROM event\n"
        for n in range(count)
    )
    return rulebook(
        folder,
        f"many_{count}",
        f'tables:\n  changes: {{path: "{changes}"}}\n  hits: {{path: "{hits}"}}\n'
        f"events:\n{events}rules:\n{rules}",
    )


def seconds(spark: SparkSession, folder: Path, count: int) -> float:
    """The median of five buckets under `count` rules, after one of warming up."""
    changes, hits = folder / f"changes_{count}", folder / f"hits_{count}"
    lake.create(spark, changes, "grade INT, amount DOUBLE")
    lake.create(spark, hits, "n BIGINT")
    rows = spark.range(ROWS, numPartitions=1).selectExpr(
        "if(id % 100 = 0, 0, -1) AS grade", "double(id) AS amount"
    )
    file = book(folder, count, changes, hits)
    return lake.bucket_seconds(spark, file, rows, changes)


def run(spark: SparkSession, folder: Path) -> Figure:
    """1,000 rules against one."""
    seconds(spark, folder / "warm", 1)
    numbers = {f"rules_{count}_seconds": seconds(spark, folder, count) for count in COUNTS}
    ratio = numbers["rules_1000_seconds"] / numbers["rules_1_seconds"]
    return Figure("many rules: 1,000 / 1", ratio, 4.0, numbers)
