"""A lake in the middle of its history, once for all crashes, and what becomes of it without any."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.crash import child
from tests.crash.lake import Lake
from tests.support.gateway import gateway
from tidegate import Engine
from tidegate.engine.core.failpoints import VARIABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
Crash = Callable[[Lake, str], int]


@pytest.fixture(scope="session")
def prepared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Two accounts were paid in and taken; what pays them out, and more, waits to be taken."""
    lake = Lake(tmp_path_factory.mktemp("crash"))
    lake.build()
    with Engine(lake.rulebook, spark=spark, store=lake.store) as engine:
        engine.run(until_idle=True)
        lake.move((1, 1, 50), (2, 2, 30))
        engine.run(until_idle=True)
    lake.move((3, 1, -20), (4, 3, 200))
    lake.move((5, 2, -30), (6, 4, 150))
    lake.move((7, 4, -50))
    return lake


@pytest.fixture(scope="session")
def uncrashed(
    spark: SparkSession, prepared: Lake, tmp_path_factory: pytest.TempPathFactory
) -> Lake:
    lake = prepared.copy(tmp_path_factory.mktemp("uncrashed") / "lake")
    finish(spark, lake)
    return lake


@pytest.fixture
def lake(prepared: Lake, tmp_path: Path) -> Lake:
    return prepared.copy(tmp_path / "lake")


@pytest.fixture
def crash(spark: SparkSession) -> Crash:
    """Runs an engine in a process of its own with failpoints armed; returns its exit code. The
    process is a copy of one that has imported the engine: that takes longer than the rest."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([child.__name__])

    def run(lake: Lake, failpoints: str) -> int:
        process = processes.Process(target=child.run, args=(lake, failpoints, gateway(spark)))
        process.start()
        process.join(timeout=120)
        process.kill()
        process.join()
        assert process.exitcode is not None
        return process.exitcode

    return run


def run_process(module: list[str], failpoints: str, environment: dict[str, str]) -> int:
    """A Python module in a process of its own; what it says is shown when it ends by itself."""
    ended = subprocess.run(
        [sys.executable, "-m", *module],
        cwd=ROOT,
        env={**os.environ, **environment, VARIABLE: failpoints},
        capture_output=True,
        text=True,
        timeout=120,
    )
    print(ended.stdout, ended.stderr)
    return ended.returncode


def finish(spark: SparkSession, lake: Lake) -> None:
    """Run until nothing is left to do."""
    with Engine(lake.rulebook, spark=spark, store=lake.store) as engine:
        engine.run(until_idle=True)
