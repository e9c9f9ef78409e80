"""What an engine costs that has nothing to do: a poll every half second of one table.

    python -m benchmarks.idle FOLDER

runs it in a process of its own, and prints the seconds of a core that Python and Java took.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks import lake
from benchmarks.figure import Figure, rulebook

POLL_SECONDS = 0.5
SETTLE_SECONDS = 60.0  # Java compiles what has just run; on a busy machine for longer
SECONDS = 60.0


def alone(folder: Path) -> None:
    """Python's and Java's seconds of a core in a minute of idling."""
    from tidegate import Engine
    from tidegate.connectors.delta.session import start_session

    folder.mkdir(parents=True, exist_ok=True)
    spark = start_session("idle")
    for table in ("rows", "hits"):
        lake.create(spark, folder / table, "k BIGINT")
    book = rulebook(
        folder,
        "idle",
        f"""tables:
  rows: {{path: "{folder / "rows"}"}}
  hits: {{path: "{folder / "hits"}"}}
events:
  arrived: {{on: insert, table: rows}}
  told: {{signal: {{k: bigint}}}}
rules:
  hit: {{on: arrived, do: [{{sql: INSERT INTO hits SELECT k FROM event}}]}}
  heard: {{on: told, do: [{{sql: INSERT INTO hits SELECT k FROM event}}]}}
""",
    )
    spark.range(3).selectExpr("id AS k").write.format("delta").mode("append").save(
        str(folder / "rows")
    )
    with Engine(book, spark=spark, store=f"sqlite:///{book.with_suffix('.db')}") as engine:
        found: dict[str, float] = {}

        def measure() -> None:
            time.sleep(SETTLE_SECONDS)
            before = _seconds(spark)
            time.sleep(SECONDS)
            python, java = (b - a for a, b in zip(before, _seconds(spark), strict=True))
            found.update(python_seconds=python, java_seconds=java)
            engine.stop()

        threading.Thread(target=measure).start()
        engine.run(poll_seconds=POLL_SECONDS)
    spark.stop()
    print(json.dumps(found))


def _seconds(spark: Any) -> tuple[float, float]:
    """Of a core, so far: Python's and Java's."""
    java = spark._jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get()
    return time.process_time(), java.toNanos() / 1e9


def run(folder: Path) -> Figure:
    """The share of a core, in hundredths."""
    command = [sys.executable, "-m", "benchmarks.idle", str(folder)]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    seconds = json.loads(told.splitlines()[-1])
    percent = 100 * sum(seconds.values()) / SECONDS
    return Figure("idle: percent of a core, one table", percent, 1.0, seconds)


if __name__ == "__main__":
    alone(Path(sys.argv[1]))
