"""From another process's commit to the action's commit, beside a minimal loop written by hand.

Both times are those of the log files, so that neither side measures itself.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from pyspark.sql import SparkSession

from benchmarks import lake
from benchmarks.figure import Figure, percentile, rulebook
from tidegate import Engine

TURNS = 2  # of each side: a JVM grows faster for long
WARM, ROUNDS = 5, 15  # of each turn
POLL_SECONDS = 0.05
GAP_SECONDS = 0.2  # between an action's commit and the next row
WAIT_SECONDS_MAX = 60.0
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
        engine.run(poll_seconds=POLL_SECONDS, on_idle=stop.is_set)


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
    micros = lake.commit_micros(tables.totals, target) - lake.commit_micros(tables.rows, source)
    time.sleep(GAP_SECONDS)
    return micros / 1000


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
    return Figure("latency: engine / loop by hand", ratio, 1.5, numbers)
