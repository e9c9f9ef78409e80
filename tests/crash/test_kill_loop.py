"""Killed or asked to stop at any time, in whatever it does, while its tables grow: nothing lost,
nothing done twice.

`make test-kill` runs it on both databases, and with executors that detect. It shows the counters,
the ends by their kind and by the stage in which they came.
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
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.crash.conftest import ROOT, finish
from tests.crash.lake import SCRIPTS, Lake, Rows
from tests.crash.staged import NAMES, stage_in
from tests.crash.traced import untraced
from tests.crash.verdict import Verdict, judge
from tests.support import postgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ROUNDS = int(os.environ.get("TIDEGATE_KILL_ROUNDS", "20"))
PROGRESS_SECONDS_MAX = 180
AIMED_SECONDS_MAX = 20
STOP_SECONDS_MAX = 120
SEED = random.randrange(2**32)


class End(StrEnum):
    """How a process of `tidegate run` ends; `ALONE` leaves its Spark, which may bring what it has
    begun to an end while the next engine runs already."""

    WHOLE = "SIGKILL for it and its Spark"
    ALONE = "SIGKILL for it alone"
    ASKED = "SIGTERM"
    ASKED_THEN_KILLED = "SIGTERM, then SIGKILL within 3 s"
    ASKED_TWICE = "SIGTERM twice within 3 s"


@dataclass
class Kills:
    """The engine and its end, again and again; `written` is what the writer has put into `moves`,
    `ends` how the engine ended, `stages` what it was doing then."""

    spark: SparkSession
    lake: Lake
    chance: random.Random
    written: Rows = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    stages: Counter[str] = field(default_factory=Counter)
    rounds: int = 0

    @property
    def told(self) -> Path:
        return self.lake.folder / "stage"

    def round(self) -> None:
        """An engine goes on where the one before it ended, and reacts to what is new; then it is
        ended: at a time of its own, or in a stage in which none was ended so far."""
        end = list(End)[self.rounds % len(End)]
        self.rounds += 1
        with self.engine(end):
            moved = self.grow()
            wait_for(lambda: self.copied(moved))
            left = [stage for stage in NAMES if not self.stages[stage]]
            self.grow()
            if left and (self.rounds > ROUNDS or self.chance.random() < 0.7):
                self.aim(self.chance.choice(left))
            else:
                time.sleep(self.chance.uniform(0, 4))

    def aim(self, stage: str) -> None:
        """Return as soon as the engine is in a stage, or after a while."""
        until = time.monotonic() + AIMED_SECONDS_MAX
        told = self.told.open("rb", buffering=0)
        with told:
            while os.pread(told.fileno(), 1, 0)[0] != NAMES.index(stage):
                if time.monotonic() > until:
                    return

    @contextmanager
    def engine(self, end: End) -> Iterator[None]:
        """`tidegate run`, which reacts for as long as the block lasts and is ended then."""
        self.told.write_bytes(b"\0")
        run = ["run", str(self.lake.rulebook), "--store", self.lake.store, "--poll", "50ms"]
        command = [sys.executable, "-m", "tests.crash.staged", str(self.told), *run]
        process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
        try:
            yield
            assert process.poll() is None, "the engine ended by itself"
            self.stages[stage_in(self.told)] += 1
            self.ends[end] += 1
            self.end(process, end)
        finally:
            if process.poll() is None or end is End.WHOLE:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def end(self, process: subprocess.Popen[bytes], end: End) -> None:
        match end:
            case End.WHOLE:
                os.killpg(process.pid, signal.SIGKILL)
            case End.ALONE:
                process.kill()
            case End.ASKED:
                process.terminate()
                assert process.wait(STOP_SECONDS_MAX) == 0
            case End.ASKED_THEN_KILLED | End.ASKED_TWICE:
                process.terminate()
                time.sleep(self.chance.uniform(0, 3))
                (process.kill if end is End.ASKED_THEN_KILLED else process.terminate)()
        process.wait(STOP_SECONDS_MAX)

    def grow(self) -> int:
        """Two commits: money comes in and goes out again. Returns the id of the second move."""
        account, moved = len(self.written) // 2 + 1, len(self.written) + 1
        for row in (
            (moved - 1, account, 60 + 10 * (account % 10)),
            (moved, account, -30),
        ):
            self.spark.sql(f"INSERT INTO {self.lake.table('moves')} VALUES {row}")
            self.written[row] += 1
        return moved

    def copied(self, number: int) -> bool:
        """Whether a running engine has reacted to a move: one that ended before it cannot
        have."""
        return any(row[0] == "copied" and row[2] == number for row in self.lake.rows("effects"))


@pytest.mark.kill
@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("detect", ["driver", "spark"])
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_g16b_kills_at_any_time(
    spark: SparkSession, tmp_path: Path, kind: str, detect: str, request: pytest.FixtureRequest
) -> None:
    running: postgres.Server | None = None
    if kind == "postgresql":
        running = request.getfixturevalue("server")
    lake = Lake(tmp_path, running.new_url() if running else "")
    lake.build(detect, SCRIPTS)
    finish(spark, lake)
    kills = Kills(spark, lake, random.Random(SEED))
    while kills.rounds < ROUNDS or (kills.rounds < 2 * ROUNDS and len(kills.stages) < len(NAMES)):
        kills.round()
    finish(spark, lake)
    verdict = judge(lake)
    print(f"\n{kind}, {detect}, seed {SEED}, {kills.rounds} ends: {asdict(verdict)}")
    print(f"by kind: {dict(kills.ends)}\nby stage: {dict(kills.stages)}")
    assert lake.rows("moves") == kills.written
    assert verdict == Verdict()
    assert untraced(lake) == []
    assert {stage: kills.stages[stage] for stage in NAMES if not kills.stages[stage]} == {}


def wait_for(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + PROGRESS_SECONDS_MAX
    while not happened():
        assert time.monotonic() < until, "no progress"
        time.sleep(0.2)
