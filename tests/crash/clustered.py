"""`tidegate run` as a user starts it, on a cluster. Where a failpoint ends it, its Java is killed,
too. With a FILE, the first task that has stepped its rows makes the file. Then it kills its
executor; or, if the name is `slow`, it goes on after a minute. A second try of a task makes the
file `again` beside it.

    python -m tests.crash.clustered FILE run RULEBOOK --store URL --spark-conf spark.master=..
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark import TaskContext

from tidegate.engine.cli import main as cli
from tidegate.engine.core import failpoints
from tidegate.engine.detect.events.step import component_detector
from tidegate.engine.detect.events.step.component_task import run

SECONDS_SLOW = 60


class Disturbed:
    """In an executor: `run`, and for the first of all tasks the end of the executor, or a minute
    without anything."""

    def __init__(self, file: str) -> None:
        self.file = file

    def __call__(self, plan: Any, fires: Any, given: Any, read: Sequence[Any] = ()) -> Any:
        done = run(plan, fires, given, read)
        context = TaskContext.get()
        if context is not None and context.attemptNumber():
            (Path(self.file).parent / "again").touch()
        with suppress(FileExistsError):
            os.close(os.open(self.file, os.O_CREAT | os.O_EXCL))
            if Path(self.file).name == "slow":
                time.sleep(SECONDS_SLOW)
                return done
            os.kill(_parent(os.getppid()), signal.SIGKILL)  # of what starts workers
        return done


def _parent(process: int) -> int:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


def kill_all(code: int) -> None:  # noqa: ARG001
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    failpoints._end_process = kill_all
    if file := sys.argv[1]:
        from tests.crash import clustered  # executors know it by this name

        component_detector.run = clustered.Disturbed(file)  # type: ignore[assignment]
    sys.argv = ["tidegate", *sys.argv[2:]]
    cli.main()


if __name__ == "__main__":
    main()
