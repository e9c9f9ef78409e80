"""From another process's commit to the action's commit, beside a minimal loop written by hand.

Both times are those of the log files, so that neither side measures itself. Where the engine's time
goes is what its reports say of a bucket; `see` is what is left, before the bucket began; `settle`
comes after the action's commit.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import IO

from pyspark.sql import SparkSession

from benchmarks import lake
from benchmarks.figure import Figure, percentile, rulebook
from tidegate import Engine
from tidegate.engine.core.state import BucketReport

TURNS = 2  # of each side: a JVM grows faster for long
WARM, ROUNDS = 5, 15  # of each turn
POLL_SECONDS = 0.05
GAP_SECONDS = 0.2  # between an action's commit and the next row
WAIT_SECONDS_MAX = 60.0
STAGES = {  # of a bucket before its actions, and what the engine's reports call them
    "plan": "plan",
    "read_the_feed": "capture",
    "detect": "detect",
    "evaluate": "evaluate",
    "store": "commit",
}
MERGE = """MERGE INTO {totals} t
USING (SELECT k, sum(amount) AS amount FROM {rows} GROUP BY k) e ON t.k = e.k
WHEN MATCHED THEN UPDATE SET total = t.total + e.amount
WHEN NOT MATCHED THEN INSERT (k, total) VALUES (e.k, e.amount)"""


class Tables:
    """The same pair of tables for each side: arriving rows, and totals over 10,000 keys."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.rows, self.totals = folder / "rows", folder / "totals"
        lake.create(spark, self.rows, "k BIGINT, amount DOUBLE")
        lake.create(spark, self.totals, "k BIGINT, total DOUBLE")
        start = spark.range(lake.KEYS, numPartitions=1).selectExpr("id AS k", "0.0D AS total")
        start.write.format("delta").mode("append").save(str(self.totals))
        self.buckets: list[tuple[float, Mapping[str, float]]] = []  # when acted, seconds by stage
        self.rounds: list[tuple[float, float]] = []  # when the row came, and its effect

    def done(self, report: BucketReport) -> None:
        self.buckets.append((time.time(), report.seconds))


def by_hand(spark: SparkSession, tables: Tables, stop: threading.Event) -> None:
    """Poll, read the feed, MERGE: nothing is kept but the next version in a variable."""
    version = lake.head(tables.rows) + 1
    while not stop.is_set():
        if not lake.log_file(tables.rows, version).exists():
            time.sleep(POLL_SECONDS)
            continue
        feed = (
            spark.read.format("delta")
            .option("readChangeFeed", "true")
            .option("startingVersion", version)
            .option("endingVersion", version)
            .load(str(tables.rows))
        )
        feed.where("_change_type = 'insert'").createOrReplaceTempView("arrived")
        spark.sql(MERGE.format(totals=f"delta.`{tables.totals}`", rows="arrived"))
        version += 1


def by_engine(spark: SparkSession, tables: Tables, stop: threading.Event) -> None:
    """The same by a rule."""
    merge = MERGE.format(totals="totals", rows="event").replace("\n", "\n          ")
    book = rulebook(
        tables.rows.parent,
        "latency",
        f"""tables:
  rows: {{path: "{tables.rows}"}}
  totals: {{path: "{tables.totals}"}}
events:
  arrived: {{on: insert, table: rows}}
rules:
  add:
    on: arrived
    do:
      - sql: |
          {merge}
""",
    )
    with Engine(book, spark=spark, store=f"sqlite:///{book.with_suffix('.db')}") as engine:
        engine.run(poll_seconds=POLL_SECONDS, on_idle=stop.is_set, on_bucket=tables.done)


def measure(
    side: Callable[[SparkSession, Tables, threading.Event], None],
    spark: SparkSession,
    tables: Tables,
    writer: subprocess.Popen[str],
) -> list[float]:
    """Milliseconds of each round after the warm-up."""
    stop = threading.Event()
    found: list[float] = []

    def rounds() -> None:
        try:
            time.sleep(2.0)  # the side is waiting by then
            for number in range(WARM + ROUNDS):
                millis = _one_round(tables, writer)
                if number >= WARM:
                    found.append(millis)
        finally:
            stop.set()

    thread = threading.Thread(target=rounds)
    thread.start()
    side(spark, tables, stop)
    thread.join()
    if len(found) < ROUNDS:
        raise RuntimeError(f"{side.__name__}: only {len(found)} rounds were answered")
    return found


def _one_round(tables: Tables, writer: subprocess.Popen[str]) -> float:
    source, target = lake.head(tables.rows) + 1, lake.head(tables.totals) + 1
    stdin: IO[str] = writer.stdin  # type: ignore[assignment]
    stdout: IO[str] = writer.stdout  # type: ignore[assignment]
    stdin.write(f"{tables.rows}\n")
    stdin.flush()
    stdout.readline()
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not lake.log_file(tables.totals, target).exists():
        if time.monotonic() > deadline:
            raise TimeoutError("no action after a commit")
        time.sleep(0.005)
    begun, ended = (
        lake.commit_micros(table, version) / 1e6
        for table, version in ((tables.rows, source), (tables.totals, target))
    )
    tables.rounds.append((begun, ended))
    time.sleep(GAP_SECONDS)
    return (ended - begun) * 1000


def stages(tables: Tables) -> dict[str, float]:
    """The median milliseconds of each stage of the engine's rounds after the warm-up."""
    found: dict[str, list[float]] = {}
    for number, (begun, effect) in enumerate(tables.rounds):
        if number % (WARM + ROUNDS) < WARM:
            continue
        acted, seconds = min(
            (one for one in tables.buckets if one[0] >= effect), key=lambda one: one[0]
        )
        before = {name: seconds.get(stage, 0.0) for name, stage in STAGES.items()}
        act = acted - seconds["act"]
        see = act - sum(before.values()) - begun
        after = {"statement": effect - act, "settle": acted - effect}
        for name, value in {"see": see, **before, **after}.items():
            found.setdefault(name, []).append(value)
    return {name: median(values) * 1000 for name, values in found.items()}


def run(spark: SparkSession, folder: Path) -> Figure:
    """Thirty rounds a side, in turns."""
    writer = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.writer"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        writer.stdout.readline()  # type: ignore[union-attr]
        hand_tables = Tables(spark, folder / "hand")
        engine_tables = Tables(spark, folder / "engine")
        hand, engine = [], []
        for _ in range(TURNS):
            hand += measure(by_hand, spark, hand_tables, writer)
            engine += measure(by_engine, spark, engine_tables, writer)
    finally:
        writer.terminate()
        writer.wait()
    numbers = {
        f"{side}_{name}_ms": percentile(values, share)
        for side, values in (("hand", hand), ("engine", engine))
        for name, share in (("median", 0.5), ("p95", 0.95))
    }
    ratio = numbers["engine_median_ms"] / numbers["hand_median_ms"]
    numbers |= {f"{name}_ms": value for name, value in stages(engine_tables).items()}
    return Figure("latency: engine / loop by hand", ratio, 0.4, numbers)
