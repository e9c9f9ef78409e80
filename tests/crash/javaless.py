"""An engine with a Java of its own, which is killed wherever a failpoint says `exit`."""

from __future__ import annotations

import os
import signal
import sys

from pyspark import SparkContext

from tidegate import Engine
from tidegate.engine.core import failpoints


def kill_java(code: int) -> None:  # noqa: ARG001
    process = SparkContext._gateway.proc
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    book, store, points = sys.argv[1:]
    failpoints._end_process = kill_java
    with Engine(book, store=store) as engine:
        failpoints.arm(points)
        engine.run_once()
        print("buckets done")
