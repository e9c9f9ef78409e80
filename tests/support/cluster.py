"""Spark standalone clusters: a master and two workers, each a process of this machine; and the same
in the process of the driver, with executors as processes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from tests.support.jars import first_jars
from tidegate.connectors.java.runtime import java_for_spark

ROOT = Path(__file__).parents[2]
HOST = "127.0.0.1"
HOSTS = ("127.0.0.2", "127.0.0.3") if sys.platform == "linux" else (HOST, HOST)
"""Of the workers: Spark runs a task a second time on another host only."""
SECONDS_MAX = 60.0
# Short lives: Java's second compiler would take more than it gives
LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


IN_ONE_PROCESS = "local-cluster[2,1,600]"
"""A master and two workers with a core and 600 MB each, in the process of the driver."""


def conf_of(master: str) -> dict[str, str]:
    """Those with which a session uses a cluster."""
    return {
        "spark.master": master,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": LIGHT,
        "spark.driver.extraClassPath": first_jars(),
        "spark.pyspark.python": sys.executable,
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }


def home_in(folder: Path) -> dict[str, str]:
    """The environment of a driver whose workers write there: in the home of Spark, in one
    process."""
    folder.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (folder / part.name).symlink_to(part)
    return {"SPARK_HOME": str(folder), "SPARK_LOCAL_DIRS": str(folder / "local")}


@contextmanager
def standalone(folder: Path) -> Iterator[dict[str, str]]:
    """The settings with which a session uses a cluster that ends with the block. Its executors
    import this package, and tests, from this checkout."""
    given = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SPARK_DAEMON_JAVA_OPTS": LIGHT,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_WORKER_DIR": str(folder / "work"),
    }
    given.pop("SPARK_SUBMIT_OPTS", None)
    own = ("--port", "0", "--webui-port", "0")
    small = ("--cores", "1", "--memory", "600m")
    begun: list[subprocess.Popen[bytes]] = []

    def begin(name: str, kind: str, host: str, *arguments: str) -> Path:
        given["SPARK_LOCAL_IP"] = host
        command = Path(pyspark.__file__).parent / "bin" / "spark-class"
        log = folder / f"{name}.log"
        with log.open("wb") as file, java_for_spark():
            given["JAVA_HOME"] = os.environ["JAVA_HOME"]
            begun.append(
                subprocess.Popen(
                    [command, f"org.apache.spark.deploy.{kind}", *arguments, "--host", host, *own],
                    env=given, stdout=file, stderr=file, start_new_session=True,
                )
            )  # fmt: skip
        return log

    folder.mkdir(exist_ok=True)
    try:
        url = _told(begin("master", "master.Master", HOST), r"Starting Spark master at (\S+)")
        logs = [
            begin(f"worker-{n}", "worker.Worker", host, url, *small) for n, host in enumerate(HOSTS)
        ]
        for log in logs:
            _told(log, r"Successfully (registered) with master")
        yield conf_of(url)
    finally:
        for process in begun:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _told(log: Path, sign: str) -> str:
    """What a process writes into its log, once it has."""
    until = time.monotonic() + SECONDS_MAX
    while not (found := re.search(sign, log.read_text(errors="replace"))):
        assert time.monotonic() < until, log.read_text(errors="replace")
        time.sleep(0.1)
    return found[1]
