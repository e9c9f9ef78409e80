"""Pending timers: what a million of them weigh, what it costs when many or one of them are due, how
late the engine wakes up, and a night of downtime.

python -m benchmarks.timers [KEYS]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.figure import Figure, percentile, rulebook
from benchmarks.lake import create
from tidegate import Engine, rules
from tidegate.connectors.scheduler import Wakeup
from tidegate.engine.core.values import Batch, Carried, Int64
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.engine.store import open_store
from tidegate.engine.store.buckets import save_carried
from tidegate.engine.store.database import Database
from tidegate.engine.store.shelf import Packed

FEW, MANY = 1_000, 1_000_000
DUE = 100_000
BLOCK = 100_000
ASKED = 30
BYTES_MAX = 300
DAY = 86_400_000_000
WAKE_MS_MAX = 50
NIGHT_ROWS, NIGHT_SECONDS_MAX = 10_000, 10
NIGHT = """
tables:
  rows: {path: ./rows}
  out: {path: ./out}
events: {row: {on: insert, table: rows}, gone: {signal: {id: bigint}}}
rules:
  r:
    on: "not(gone)[row, [2 s]]"
    per: id
    do: INSERT INTO out SELECT id FROM event
"""
BOOK = """
rulebook: timers
events: {a: {signal: {k: bigint}}, b: {signal: {k: bigint}}}
rules: {r: {on: "not(b)[a, [1 day]]", per: k}}
"""


class Pending:
    """A rule with a timer for each of some keys, a microsecond apart, and the store that keeps
    them."""

    def __init__(self, folder: Path, keys: int) -> None:
        book = rules.load(BOOK)
        self.detector = Partitioned(Detector(book, {"r": 0}), book.settings.state_partitions)
        url = f"sqlite:///{folder / f'timers_{keys}.db'}"
        with open_store(url, create=True) as store:
            store.of("timers").versions.register(BOOK, None)
        self.database = Database(url)
        self.carried, self.at = Carried(), 0
        for block in np.array_split(np.arange(keys), max(1, keys // BLOCK)):
            self.arrive(block)
        self.keys = keys
        self.waited = 0

    def arrive(self, keys: Int64) -> float:
        """The seconds that so many arrivals take, each of which starts a timer."""
        at = np.arange(self.at + 1, self.at + 1 + len(keys))
        self.at = int(at[-1])
        ids = np.stack([at, keys], axis=1).astype(np.uint64)
        batch = Batch("a", at, np.arange(len(keys)), pa.table({"k": keys}), {"k": ids})
        return self._step({"a": batch}, self.at)

    def due(self, count: int) -> float:
        """The seconds that the next `count` timers take."""
        self.waited += count
        return self._step({}, DAY + self.waited)

    def _step(self, batches: dict[str, Batch], watermark: int) -> float:
        begun = time.perf_counter()
        _, self.carried, _ = self.detector.step(self.carried, batches, watermark)
        with self.database.write() as connection:
            left = self.carried
            here = {name: Packed.of(table) for name, table in left.written.items()}
            save_carried(connection, "timers", left, here, {})
        return time.perf_counter() - begun


def run(folder: Path, many: int = MANY) -> list[Figure]:
    folder.mkdir(parents=True, exist_ok=True)
    pending = {keys: Pending(folder, keys) for keys in (FEW, many)}
    large = pending[many]
    weight = sum(table.nbytes for table in large.carried.tables.values()) / many
    one: dict[int, list[float]] = {keys: [] for keys in pending}
    for _ in range(ASKED):
        for keys, state in pending.items():
            one[keys].append(state.due(1))
    medians = {keys: statistics.median(found) for keys, found in one.items()}
    arrivals = Pending(folder / "..", DUE)
    arriving = statistics.median(arrivals.arrive(np.arange(DUE) + n * DUE) for n in range(1, 4))
    firing = statistics.median(large.due(DUE) for _ in range(3))
    for state in (*pending.values(), arrivals):
        state.database.close()
    shown = {f"{keys:,} keys, ms": 1e3 * found for keys, found in medians.items()}
    due = {"due, ms": 1e3 * firing, "arriving, ms": 1e3 * arriving}
    return [
        Figure(f"timers: bytes of one of {many:,} / {BYTES_MAX}", weight / BYTES_MAX, 1.0,
               {"bytes": weight}),
        Figure(f"timers: one due of {many:,} / of {FEW:,}", medians[many] / medians[FEW], 2.0,
               shown),
        Figure(f"timers: {DUE:,} due / {DUE:,} arrivals", firing / arriving, 5.0, due),
    ]  # fmt: skip


def wake_up() -> Figure:
    """How late a pause ends that is to end at a due instant."""
    late = []
    with Wakeup(3_600) as wakeup:
        for n in range(60):
            seconds = 0.02 + 0.003 * n
            begun = time.perf_counter()
            wakeup.wait(seconds)
            late.append(1e3 * (time.perf_counter() - begun - seconds))
    median = statistics.median(late)
    numbers = {"median, ms": median, "95 %, ms": percentile(late, 0.95)}
    return Figure(f"timers: lateness of a wake-up / {WAKE_MS_MAX} ms", median / WAKE_MS_MAX, 1.0,
                  numbers)  # fmt: skip


def night(spark: SparkSession, folder: Path) -> Figure:
    """Ten thousand timers that were due while the engine was down: how long it takes until all have
    fired, and their effects stand in a table, once the engine runs again."""
    create(spark, folder / "rows", "id BIGINT")
    create(spark, folder / "out", "id BIGINT")
    book = rulebook(folder, "night", NIGHT)
    with Engine(book, spark=spark) as engine:
        engine.run_once()
        rows = spark.range(NIGHT_ROWS, numPartitions=1)
        rows.write.format("delta").mode("append").save(str(folder / "rows"))
        engine.run_once()
    time.sleep(3)
    with Engine(book, spark=spark) as engine:
        begun = time.perf_counter()
        buckets = engine.run_once()
        took = time.perf_counter() - begun
    fired = sum(bucket.firings for bucket in buckets)
    if fired != NIGHT_ROWS or spark.table(f"delta.`{folder / 'out'}`").count() != fired:
        raise RuntimeError(f"{fired} firings of {NIGHT_ROWS}")
    numbers = {"seconds": took, "buckets": float(len(buckets))}
    return Figure(f"timers: {NIGHT_ROWS:,} overdue, s / {NIGHT_SECONDS_MAX}",
                  took / NIGHT_SECONDS_MAX, 1.0, numbers)  # fmt: skip


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        size = int(sys.argv[1]) if len(sys.argv) > 1 else MANY
        for figure in [*run(Path(temporary) / "t", size), wake_up()]:
            print(figure)
