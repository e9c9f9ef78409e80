"""A backtest of `a ; b within 60 s` for each of 10,000 keys over 1M changes, against merely reading
them."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks import lake
from benchmarks.figure import Figure, median_seconds
from benchmarks.throughput import COMMITS, pattern, reading
from tidegate import backtest

WARM, ROUNDS = 3, 5


def run(spark: SparkSession, folder: Path, changes: Path) -> Figure:
    """`changes` holds at least ten commits; the last ten are the 1M changes."""
    first = lake.head(changes) - COMMITS + 1
    hits = folder / "hits"
    lake.create(spark, hits, "k BIGINT, total DOUBLE")
    book = pattern(folder, "past", changes, hits, first)
    firings: list[int] = []

    def tried() -> None:
        found = backtest(book, str(first), spark=spark, warm_up="0")
        firings.append(len(found.firings))

    readings, runs = [], []
    for _ in range(WARM + ROUNDS):  # in turn: a machine's speed drifts
        readings.append(median_seconds([lambda: reading(spark, changes, first)]))
        runs.append(median_seconds([tried]))
    read_seconds = sorted(readings[WARM:])[ROUNDS // 2]
    seconds = sorted(runs[WARM:])[ROUNDS // 2]
    return Figure(
        "backtest: 1M changes / merely reading them",
        seconds / read_seconds,
        2.0,
        {"read_seconds": read_seconds, "seconds": seconds, "firings": firings[-1]},
    )
