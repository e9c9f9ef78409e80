"""Peak memory of the engine's process at 1M and at 10M changes in commits of 100,000.

    python -m benchmarks.memory FOLDER CHANGES FIRST

runs the engine once, in a process of its own, and prints the peaks in megabytes.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

from benchmarks import lake
from benchmarks.figure import Figure
from benchmarks.throughput import COMMITS, pattern


def alone(folder: Path, changes: Path, first: int) -> None:
    """Python's peak is the figure; Java's heap has a fixed bound and is told beside it."""
    from tidegate import Engine
    from tidegate.connectors.delta.session import start_session

    spark = start_session("memory")
    hits = folder / "hits"
    lake.create(spark, hits, "k BIGINT, total DOUBLE")
    book = pattern(folder, "memory", changes, hits, first)
    with Engine(book, spark=spark, store=f"sqlite:///{book.with_suffix('.db')}") as engine:
        engine.run_once()
    java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    status = Path(f"/proc/{java}/status")
    peak = status.read_text().split("VmHWM:")[1].split()[0] if status.exists() else "0"
    spark.stop()
    unit = 1024 if sys.platform == "linux" else 1024 * 1024  # ru_maxrss: KiB there, bytes on macOS
    python = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(json.dumps({"python_mb": python, "java_mb": int(peak) / 1024}))


def run(folder: Path, changes: Path) -> Figure:
    """`changes` holds 100 commits; all of them against the last ten."""
    last = lake.head(changes)
    numbers: dict[str, float] = {}
    for name, commits in (("1m", COMMITS), ("10m", last)):
        command = [sys.executable, "-m", "benchmarks.memory"]
        command += [str(folder / name), str(changes), str(last - commits + 1)]
        told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        peaks = json.loads(told.splitlines()[-1])
        numbers |= {f"{side}_{name}": value for side, value in peaks.items()}
    ratio = numbers["python_mb_10m"] / numbers["python_mb_1m"]
    return Figure("memory: 10M changes / 1M", ratio, 1.15, numbers)


if __name__ == "__main__":
    alone(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
