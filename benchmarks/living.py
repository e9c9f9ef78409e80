"""What an operator waits for: an engine that goes on after a crash, a standby that takes over, a
changed rule among 1,000.

    python -m benchmarks.living FOLDER

is the engine after the crash: it starts Spark, then goes on, and prints the seconds of that.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import lake
from benchmarks.figure import Figure, rulebook

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULES = 1_000
LEASE_SECONDS = 5
RECOVERY_MAX, TAKEOVER_MAX, RELOAD_MAX = 2.0, 2.0, 1.0  # seconds; a takeover's beside the lease
WAIT_SECONDS = 600.0


def book(folder: Path, name: str, rules: int, amount: int = 0) -> Path:
    """`rules` rules on one table; `amount`: a limit of the last one."""
    events = "".join(
        f"  e{n}: {{on: insert, table: rows, where: k = {n + (amount if n == rules - 1 else 0)}}}\n"
        for n in range(rules)
    )
    return rulebook(
        folder,
        name,
        f"settings: {{lease_seconds: {LEASE_SECONDS}}}\n"
        f'tables:\n  rows: {{path: "{folder / "rows"}"}}\n  log: {{path: "{folder / "log"}"}}\n'
        f"events:\n{events}rules:\n"
        + "".join(
            f"  r{n}: {{on: e{n}, do: [{{sql: INSERT INTO log SELECT k FROM event}}]}}\n"
            for n in range(rules)
        ),
    )


def store(file: Path) -> str:
    return f"sqlite:///{file.with_suffix('.db')}"


def append(spark: SparkSession, folder: Path) -> None:
    spark.range(10).selectExpr("id AS k").write.format("delta").mode("append").save(
        str(folder / "rows")
    )


def recovery(spark: SparkSession, folder: Path) -> Figure:
    """An engine ends between its store's transaction and the effect; the next one, in a process of
    its own, is ready to go on."""
    from tidegate import Engine
    from tidegate.engine.core import failpoints

    file = book(folder, "living", 10)
    with Engine(file, spark=spark, store=store(file)) as engine:
        engine.run_once()
        append(spark, folder)
        failpoints.arm("statement.before=raise")
        with suppress(failpoints.FailpointError):
            engine.run_once()
        failpoints.arm("")
    command = [sys.executable, "-m", "benchmarks.living", str(folder)]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    seconds = json.loads(told.splitlines()[-1])
    ratio = seconds["ready"] / RECOVERY_MAX
    return Figure("living: recovery beside Spark's start / 2 s", ratio, 1.0, seconds)


def alone(folder: Path) -> None:
    """The engine after the crash."""
    from tidegate import Engine
    from tidegate.connectors.delta.session import start_session

    found: dict[str, float] = {}
    begun = time.perf_counter()
    spark = start_session("living")
    spark.sql("SELECT 1").collect()
    found["spark"] = time.perf_counter() - begun
    file = folder / "living.yaml"
    for name in ("ready", "ready_again"):  # Java has loaded and compiled it by then
        begun = time.perf_counter()
        with (
            telling("tidegate", "ready, ") as ready,
            Engine(file, spark=spark, store=store(file)) as engine,
        ):
            engine.run_once()
            found[name] = ready[0] - begun
    spark.stop()
    print(json.dumps(found))


def takeover(spark: SparkSession, folder: Path) -> Figure:
    """From the kill of an engine to its standby's being ready."""
    file = book(folder, "watched", 10)
    run = [sys.executable, "-m", "tidegate", "run", str(file), "--store", store(file)]
    with ExitStack() as stack:
        active, said = stack.enter_context(process(run))
        until(said, "ready, ")  # it has the lease
        _, other = stack.enter_context(process([*run, "--standby"]))
        until(other, "standby, ready")
        append(spark, folder)
        time.sleep(LEASE_SECONDS)
        active.kill()
        begun = time.perf_counter()
        taken = until(other, "ready, watching") - begun
    ratio = (taken - LEASE_SECONDS) / TAKEOVER_MAX
    told = {"seconds": taken, "lease_seconds": float(LEASE_SECONDS)}
    return Figure("living: takeover after the lease / 2 s", ratio, 1.0, told)


def reload(spark: SparkSession, folder: Path) -> Figure:
    """From the call to the rule's being taken over, while the engine waits for rows."""
    from tidegate import Engine

    file = book(folder, "thousand", RULES)
    times = []
    with (
        telling("tidegate", "rulebook thousand: version") as taken,
        Engine(file, spark=spark, store=store(file)) as engine,
    ):
        running = threading.Thread(target=engine.run)
        engine.run_once()
        running.start()
        for change in range(1, 4):
            book(folder, "thousand", RULES, change)
            begun = time.perf_counter()
            engine.reload()
            while len(taken) < change:
                time.sleep(0.01)
            times.append(taken[-1] - begun)
        engine.stop()
        running.join()
    told = {f"seconds_{n}": each for n, each in enumerate(times, 1)}
    return Figure("living: a rule of 1,000 is replaced / 1 s", sorted(times)[1], 1.0, told)


@contextmanager
def telling(logger: str, words: str) -> Iterator[list[float]]:
    """When a message with these words was logged."""
    times: list[float] = []

    class Noting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if words in record.getMessage():
                times.append(time.perf_counter())

    handler, chosen = Noting(), logging.getLogger(logger)
    level = chosen.level
    chosen.addHandler(handler)
    chosen.setLevel(logging.INFO)
    try:
        yield times
    finally:
        chosen.removeHandler(handler)
        chosen.setLevel(level)


Lines = list[tuple[float, str]]


@contextmanager
def process(command: list[str]) -> Iterator[tuple[subprocess.Popen[str], Lines]]:
    """A process, and what it says, each line with when it came."""
    lines: Lines = []
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )

    def read() -> None:
        for line in started.stdout or ():
            lines.append((time.perf_counter(), line))

    reading = threading.Thread(target=read)
    reading.start()
    try:
        yield started, lines
    finally:
        started.kill()
        started.wait()
        reading.join()


def until(lines: Lines, words: str) -> float:
    """When a line with these words came."""
    end = time.perf_counter() + WAIT_SECONDS
    while time.perf_counter() < end:
        for when, line in list(lines):
            if words in line:
                return when
        time.sleep(0.01)
    raise AssertionError(f"{words!r} was not said: {''.join(line for _, line in lines)}")


def run(spark: SparkSession, folder: Path) -> list[Figure]:
    lake.create(spark, folder / "rows", "k BIGINT")
    lake.create(spark, folder / "log", "k BIGINT")
    steps: list[Callable[[SparkSession, Path], Figure]] = [recovery, reload, takeover]
    return [step(spark, folder) for step in steps]


if __name__ == "__main__":
    alone(Path(sys.argv[1]))
