"""One rule `a ; b within 60 s` for each of 10,000 keys over 1M changes, against reading them."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks import lake
from benchmarks.figure import Figure, median_seconds, rulebook
from engine import Engine

ROUNDS = 3
COMMITS = 10


def pattern(folder: Path, name: str, changes: Path, hits: Path, first: int) -> Path:
    """The rulebook: reads `changes` from version `first` on, writes a row a firing to `hits`."""
    return rulebook(
        folder,
        name,
        f"""tables:
  changes: {{path: "{changes}", start: {{version: {first}}}}}
  hits: {{path: "{hits}"}}
events:
  a: {{on: insert, table: changes, where: kind = 'a'}}
  b: {{on: insert, table: changes, where: kind = 'b'}}
rules:
  pair:
    on: a ; b within 60 s
    per: k
    do:
      - sql: INSERT INTO hits SELECT k, sum(amount) FROM event GROUP BY firing_id, k
""",
    )


def run(spark: SparkSession, folder: Path, changes: Path) -> Figure:
    """`changes` holds at least ten commits; the last ten are the 1M changes."""
    last = lake.head(changes)
    first = last - COMMITS + 1
    hits = [folder / f"hits_{n}" for n in range(ROUNDS + 1)]
    for table in hits:
        lake.create(spark, table, "k BIGINT, total DOUBLE")

    def null() -> None:
        feed = (
            spark.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", first)
            .option("endingVersion", last)
            .load(str(changes))
        )
        feed.select("_change_type", "_commit_version", "k", "kind", "amount").toArrow()

    def engine(number: int) -> None:
        book = pattern(folder / f"throughput_{number}", "pair", changes, hits[number], first)
        with Engine(book, spark=spark, store=f"sqlite:///{book.with_suffix('.db')}") as running:
            running.run_once()

    null()
    engine(0)
    null_seconds = median_seconds([null] * ROUNDS)
    engine_seconds = median_seconds([lambda n=n: engine(n) for n in range(1, ROUNDS + 1)])  # type: ignore[misc]
    firings = spark.read.format("delta").load(str(hits[-1])).count()
    return Figure(
        "throughput: engine / null pipeline",
        engine_seconds / null_seconds,
        2.0,
        {"null_seconds": null_seconds, "engine_seconds": engine_seconds, "firings": firings},
    )
