"""One rule `a ; b within 60 s` for each of 10,000 keys over 1M changes, against reading them."""

from __future__ import annotations

import time
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks import lake
from benchmarks.figure import Figure, median_seconds, rulebook
from tidegate import Engine

WARM, ROUNDS = 3, 5  # a cold JVM is slow for long
COMMITS = 10
IDLE_SECONDS = 1.0


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


def reading(spark: SparkSession, changes: Path, first: int) -> None:
    """Merely read the changes from version `first` on."""
    feed = (
        spark.read.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", first)
        .option("endingVersion", lake.head(changes))
        .load(str(changes))
    )
    feed.select("_change_type", "_commit_version", "k", "kind", "amount").toArrow()


def run(spark: SparkSession, folder: Path, changes: Path) -> Figure:
    """`changes` holds at least ten commits; the last ten are the 1M changes."""
    first = lake.head(changes) - COMMITS + 1
    hits = folder / "hits"
    lake.create(spark, hits, "k BIGINT, total DOUBLE")

    stages: dict[str, list[float]] = {}

    def engine(number: int) -> float:
        """Seconds from the first look to the last settled entry, of an engine that has been waiting
        for changes; those of each stage go to `stages`."""
        book = pattern(folder / f"throughput_{number}", f"pair_{number}", changes, hits, first)
        with Engine(book, spark=spark, store=f"sqlite:///{book.with_suffix('.db')}") as running:
            time.sleep(IDLE_SECONDS)
            begun = time.perf_counter()
            reports = running.run_once()
            taken = time.perf_counter() - begun
        told = {stage for report in reports for stage in report.seconds}
        for stage in told:
            of_stage = sum(report.seconds.get(stage, 0.0) for report in reports)
            stages.setdefault(stage, []).append(of_stage)
        stages.setdefault("between", []).append(taken - sum(stages[stage][-1] for stage in told))
        return taken

    nulls, engines = [], []
    for number in range(WARM + ROUNDS):  # in turn: a machine's speed drifts
        nulls.append(median_seconds([lambda: reading(spark, changes, first)]))
        engines.append(engine(number))
    null_seconds = sorted(nulls[WARM:])[ROUNDS // 2]
    engine_seconds = sorted(engines[WARM:])[ROUNDS // 2]
    firings = spark.read.format("delta").load(str(hits)).count() / (WARM + ROUNDS)
    split = {
        f"{stage}_seconds": sorted(taken[WARM:])[len(taken[WARM:]) // 2]
        for stage, taken in sorted(stages.items())
    }
    return Figure(
        "throughput: engine / null pipeline",
        engine_seconds / null_seconds,
        1.5,
        {"null_seconds": null_seconds, "engine_seconds": engine_seconds, "firings": firings}
        | split,
    )
