"""Killed at any time, twenty times, while its tables grow: nothing lost, nothing done twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.crash.conftest import ROOT, finish
from tests.crash.lake import Lake
from tests.crash.verdict import Verdict, judge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = 20
PROGRESS_SECONDS_MAX = 180
SEED = random.randrange(2**32)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_twenty_kills(spark: SparkSession, tmp_path: Path) -> None:
    print("seed", SEED)  # shown where it fails
    chance = random.Random(SEED)
    lake = Lake(tmp_path)
    lake.build(spark)
    finish(spark, lake)
    for round_ in range(ROUNDS):
        with engine(lake, whole=chance.random() < 0.5):
            moved = grow(spark, lake, round_)
            wait_for(lambda number=moved: copied(lake, number))
            grow(spark, lake, round_ + ROUNDS)
            time.sleep(chance.uniform(0, 4))
    finish(spark, lake)
    assert lake.rows("moves").total() == 4 * ROUNDS
    assert judge(lake) == Verdict()


@contextmanager
def engine(lake: Lake, whole: bool) -> Iterator[None]:
    """`tidegate run`, killed in the end: `whole` with its Spark, or Python alone, whose Spark may
    bring what it has begun to an end while the next engine runs already."""
    command = ["tidegate", "run", str(lake.rulebook), "--store", lake.store, "--poll", "50ms"]
    process = subprocess.Popen([sys.executable, "-m", *command], cwd=ROOT, start_new_session=True)
    try:
        yield
        assert process.poll() is None, "the engine ended by itself"
    finally:
        if whole:
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


def grow(spark: SparkSession, lake: Lake, number: int) -> int:
    """Two commits: money comes in and goes out again. Returns the id of the second move."""
    account, moved = number + 1, 2 * number + 1
    lake.move(spark, (moved - 1, account, 60 + 10 * (number % 10)))
    lake.move(spark, (moved, account, -30))
    return moved


def copied(lake: Lake, number: int) -> bool:
    """Whether a running engine has reacted to a move: one that was killed before it cannot have."""
    return any(row[0] == "copied" and row[2] == number for row in lake.rows("effects"))


def wait_for(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + PROGRESS_SECONDS_MAX
    while not happened():
        assert time.monotonic() < until, "no progress"
        time.sleep(0.2)
