"""A bucket of 1,000 rows under `detect: spark`, with 50,000 carried instances and with many more.

    python -m benchmarks.carried [CARRIED]

Executors read the rows, read and write the partitions that these touch, and leave all others where
they are. The engine's process is as large with many instances as with few.
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks import lake
from benchmarks.figure import Figure, rulebook
from tidegate import Engine
from tidegate.connectors.delta.session import start_session
from tidegate.engine.detect.events.state.partitions import ROWS_MAX
from tidegate.engine.detect.events.step.component_task import FINER

FEW, MANY = 50_000, 50_000_000
ROWS, ASKED = 1_000, 5
TARGET = 3.0
PART_ROWS = ROWS_MAX // FINER
TEXT = """
tables: {{a: {{path: "{folder}/a", start: earliest}}, b: {{path: "{folder}/b"}}}}
events: {{a: {{on: insert, table: a}}, b: {{on: insert, table: b}}}}
settings: {{detect: spark, state_partitions: {partitions}, spark_rows_max: {most}}}
rules: {{r: {{on: a ; b, per: k}}}}
"""


class Side:
    """An engine that carries an `a` of each of so many keys."""

    def __init__(self, spark: SparkSession, folder: Path, carried: int, stack: ExitStack) -> None:
        self.spark, self.folder, self.carried = spark, folder, carried
        for name in ("a", "b"):
            lake.create(spark, folder / name, "k BIGINT, v DOUBLE")
        partitions = 4
        while partitions * PART_ROWS < carried and partitions < 65_536:
            partitions *= 4
        text = TEXT.format(folder=folder, partitions=partitions, most=max(carried, ROWS) // 4)
        book = rulebook(folder, "apart", text)
        self.write("id", carried)
        begun = time.perf_counter()
        engine = Engine(book, spark=spark, store=f"sqlite:///{folder / 'apart.db'}")
        self.engine = stack.enter_context(engine)
        self.engine.run_once()
        self.filled = time.perf_counter() - begun
        self.bucket()  # what the first one brings in place is there

    def write(self, key: str, rows: int) -> None:
        frame = self.spark.range(rows).selectExpr(f"{key} AS k", "rand(7) AS v")
        frame.write.format("delta").mode("append").save(str(self.folder / "a"))

    def bucket(self) -> float:
        """The seconds of a bucket of rows of keys drawn at random."""
        self.write(f"CAST(rand() * {self.carried} AS BIGINT)", ROWS)
        begun = time.perf_counter()
        reports = self.engine.run_once()
        seconds = time.perf_counter() - begun
        assert sum(report.rows for report in reports) == ROWS
        assert {report.detected_by for report in reports} == {"executors"}
        return seconds


def run(spark: SparkSession, folder: Path, many: int = MANY) -> Figure:
    """The ratio of the medians, asked in turn: what else the machine does slows both."""
    sides, numbers = dict[str, Side](), dict[str, float]()
    with ExitStack() as stack:
        for name, carried in (("few", FEW), ("many", many)):
            sides[name] = Side(spark, folder / name, carried, stack)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            numbers |= {f"python_mb_{name}": peak / 1024, f"filled_s_{name}": sides[name].filled}
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(ASKED):
            for name, side in sides.items():
                seconds[name].append(side.bucket())
    middle = {name: statistics.median(some) for name, some in seconds.items()}
    numbers |= {f"bucket_s_{name}": value for name, value in middle.items()}
    return Figure(
        f"carried: a bucket in executors beside {many:,} carried / {FEW:,}",
        middle["many"] / middle["few"],
        TARGET,
        numbers,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(run(start_session("carried"), Path(made), *map(int, sys.argv[1:])))
