"""A hundred million changes that executors read and detect in one bucket, with two keys.

    python -m benchmarks.apart [CHANGES]

The peers, in the same run over the same rows: to read them into nothing, to detect them in one
process (its seconds are shared by the slots), and an identity `cogroup.applyInArrow`, which sorts
and sends them as Spark does for any function. The memory of the engine's process is told beside a
bucket of a million changes.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks import lake
from benchmarks.figure import Figure, rulebook
from tidegate import Engine, rules
from tidegate.connectors.delta.session import start_session
from tidegate.engine.core.values import Batch, Carried
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.rules.checks.gaps import SIMULATED

CHANGES, FIRST = 100_000_000, 1_000_000
COMMITS, KEYS, BLOCK = 20, 1_000_000, 500_000
SLOTS = os.cpu_count() or 1
TARGET = 1.3
RULES = "rules: {r: {on: a ; b, per: k}, s: {on: a ; b, per: m}}\n"
TEXT = """
tables: {{t: {{path: "{table}", start: earliest}}}}
events:
  a: {{on: insert, table: t, where: v < 990}}
  b: {{on: insert, table: t, where: v >= 990}}
settings: {{detect: spark}}
"""
SIGNALS = """rulebook: apart
events:
  a: {signal: {k: bigint, m: bigint, v: bigint}}
  b: {signal: {k: bigint, m: bigint, v: bigint}}
"""


def written(spark: SparkSession, table: Path, changes: int) -> None:
    """Versions 1 to `COMMITS`: one change in a hundred is a `b`."""
    lake.create(spark, table, "k BIGINT, m BIGINT, v BIGINT")
    for commit in range(COMMITS):
        rows = spark.range(changes // COMMITS).selectExpr(
            f"pmod(xxhash64(id, {commit}, 1), {KEYS}) AS k",
            f"pmod(xxhash64(id, {commit}, 2), {KEYS}) AS m",
            f"pmod(xxhash64(id, {commit}, 3), 1000) AS v",
        )
        rows.write.format("delta").mode("append").save(str(table))


def engine_seconds(spark: SparkSession, folder: Path, table: Path, changes: int) -> float:
    book = rulebook(folder, "apart", TEXT.format(table=table) + RULES)
    with Engine(book, spark=spark, store=f"sqlite:///{folder / 'apart.db'}") as engine:
        begun = time.perf_counter()
        reports = engine.run_once()
        seconds = time.perf_counter() - begun
    assert sum(report.rows for report in reports) == changes
    assert {report.detected_by for report in reports if report.rows} == {"executors"}
    return seconds


def read_seconds(spark: SparkSession, table: Path) -> float:
    """Into nothing."""
    feed = spark.read.format("delta").option("readChangeFeed", "true")
    rows = feed.option("startingVersion", 1).load(str(table))
    begun = time.perf_counter()
    rows.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun


def cogroup_seconds(spark: SparkSession, table: Path, changes: int) -> float:
    """Every row goes to the executor of its key, with nothing on the other side."""
    tasks = max(SLOTS, changes // 1_000_000)
    rows = spark.read.format("delta").load(str(table)).selectExpr(f"pmod(k, {tasks}) AS p", "*")
    none = rows.limit(0)

    def identity(_: Any, left: pa.Table, right: pa.Table) -> pa.Table:  # noqa: ARG001
        return left

    grouped = rows.groupBy("p").cogroup(none.groupBy("p"))
    made = grouped.applyInArrow(identity, rows.schema)
    begun = time.perf_counter()
    made.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun


def detector_seconds(changes: int) -> float:
    """In this process, over as many rows of the same kind as there are, but for what is more than
    ten million: of these the last seconds count as many times."""
    book = rules.load(SIGNALS + RULES, features=SIMULATED)
    detector, carried, draw = Detector(book, dict.fromkeys(book.rules, 0)), Carried(), 7
    random, last, blocks = np.random.default_rng(draw), 0.0, max(1, changes // BLOCK)
    whole, measured = 0.0, min(blocks, 10_000_000 // BLOCK)
    for number in range(measured):
        at = np.arange(1 + number * BLOCK, 1 + (number + 1) * BLOCK)
        columns = {name: random.integers(KEYS, size=BLOCK) for name in ("k", "m")}
        is_b = random.integers(1_000, size=BLOCK) >= 990
        table = pa.table({**columns, "v": np.zeros(BLOCK, np.int64)})
        rows = {"a": np.flatnonzero(~is_b), "b": np.flatnonzero(is_b)}
        ids = np.stack([at, at], axis=1).astype(np.uint64)
        batches = {e: Batch(e, at[i], i, table, {"t": ids[i]}) for e, i in rows.items()}
        begun = time.perf_counter()
        _, carried, _ = detector.step(carried, batches, int(at[-1]), partitions=256)
        last = time.perf_counter() - begun
        whole += last
    return whole + last * (blocks - measured)


def run(spark: SparkSession, folder: Path, changes: int = CHANGES) -> Figure:
    numbers: dict[str, float] = {}
    for name, count in (("1m", FIRST), ("all", changes)):
        table, own = folder / f"changes_{name}", folder / name
        written(spark, table, count)
        own.mkdir()
        numbers[f"engine_s_{name}"] = engine_seconds(spark, own, table, count)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        numbers[f"python_mb_{name}"] = peak
    numbers["read_s"] = read_seconds(spark, table)
    numbers["cogroup_s"] = cogroup_seconds(spark, table, changes)
    numbers["detector_s_by_slot"] = detector_seconds(changes) / SLOTS
    peers = numbers["read_s"] + numbers["cogroup_s"] + numbers["detector_s_by_slot"]
    name = f"apart: {changes:,} changes / read + detector + cogroup"
    return Figure(name, numbers["engine_s_all"] / peers, TARGET, numbers)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(run(start_session("apart"), Path(made), *map(int, sys.argv[1:])))
