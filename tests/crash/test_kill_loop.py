"""Killed at any time, in whatever it does, while its tables grow: nothing lost, nothing done twice.

`make test-kill` runs it on both databases, and shows the counters and the kills by stage.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.crash.conftest import ROOT, finish
from tests.crash.lake import Lake, Rows
from tests.crash.staged import NAMES, stage_in
from tests.crash.verdict import Verdict, judge
from tests.support import postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ROUNDS = int(os.environ.get("TIDEGATE_KILL_ROUNDS", "20"))
PROGRESS_SECONDS_MAX = 180
AIMED_SECONDS_MAX = 20
SEED = random.randrange(2**32)


@dataclass
class Kills:
    """The engine and its end, again and again; `written` is what the writer has put into `moves`,
    `stages` what the engine was doing when it was killed."""

    spark: SparkSession
    lake: Lake
    chance: random.Random
    written: Rows = field(default_factory=Counter)
    stages: Counter[str] = field(default_factory=Counter)
    rounds: int = 0

    @property
    def told(self) -> Path:
        return self.lake.folder / "stage"

    def round(self) -> None:
        """An engine goes on where the one before it was killed, and reacts to what is new; then it
        is killed: at a time of its own, or in a stage in which none was killed so far."""
        self.rounds += 1
        with self.engine(whole=self.chance.random() < 0.5):
            moved = self.grow()
            wait_for(lambda: self.copied(moved))
            left = [stage for stage in NAMES if not self.stages[stage]]
            self.grow()
            if left and (self.rounds > ROUNDS or self.chance.random() < 0.7):
                self.aim(self.chance.choice(left))
            else:
                time.sleep(self.chance.uniform(0, 4))
        self.stages[stage_in(self.told)] += 1

    def aim(self, stage: str) -> None:
        """Return as soon as the engine is in a stage, or after a while."""
        until = time.monotonic() + AIMED_SECONDS_MAX
        told = self.told.open("rb", buffering=0)
        with told:
            while os.pread(told.fileno(), 1, 0)[0] != NAMES.index(stage):
                if time.monotonic() > until:
                    return

    @contextmanager
    def engine(self, whole: bool) -> Iterator[None]:
        """`tidegate run`, killed in the end: `whole` with its Spark, or Python alone, whose Spark
        may bring what it has begun to an end while the next engine runs already."""
        self.told.write_bytes(b"\0")
        run = ["run", str(self.lake.rulebook), "--store", self.lake.store, "--poll", "50ms"]
        command = [sys.executable, "-m", "tests.crash.staged", str(self.told), *run]
        process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
        try:
            yield
            assert process.poll() is None, "the engine ended by itself"
        finally:
            if whole:
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            process.wait()

    def grow(self) -> int:
        """Two commits: money comes in and goes out again. Returns the id of the second move."""
        account, moved = len(self.written) // 2 + 1, len(self.written) + 1
        for row in (
            (moved - 1, account, 60 + 10 * (account % 10)),
            (moved, account, -30),
        ):
            self.lake.move(self.spark, row)
            self.written[row] += 1
        return moved

    def copied(self, number: int) -> bool:
        """Whether a running engine has reacted to a move: one that was killed before it cannot
        have."""
        return any(row[0] == "copied" and row[2] == number for row in self.lake.rows("effects"))


@pytest.mark.kill
@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_g16b_kills_at_any_time(
    spark: SparkSession, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    running: postgres.Server | None = None
    if kind == "postgresql":
        running = request.getfixturevalue("server")
    lake = Lake(tmp_path, running.new_url() if running else "")
    lake.build(spark)
    finish(spark, lake)
    kills = Kills(spark, lake, random.Random(SEED))
    while kills.rounds < ROUNDS or (kills.rounds < 2 * ROUNDS and len(kills.stages) < len(NAMES)):
        kills.round()
    finish(spark, lake)
    verdict = judge(lake)
    print(f"\n{kind}, seed {SEED}, {kills.rounds} kills: {asdict(verdict)}")
    print(f"kills by stage: {dict(kills.stages)}")
    assert lake.rows("moves") == kills.written
    assert verdict == Verdict()
    assert {stage: kills.stages[stage] for stage in NAMES if not kills.stages[stage]} == {}


def wait_for(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + PROGRESS_SECONDS_MAX
    while not happened():
        assert time.monotonic() < until, "no progress"
        time.sleep(0.2)
