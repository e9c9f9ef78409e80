"""Delta's jars: resolved by name once for each user and pair of versions, then only listed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf, java_gateway

from tidegate.connectors.delta.cache import cache_folder, write_whole
from tidegate.rules.errors import EngineError

SCALA = "2.13"
_launch: Callable[..., Any] = java_gateway.launch_gateway  # carries no types


def delta_coordinate() -> str:
    """Maven's name of the Delta that the installed `delta-spark` belongs to."""
    spark = ".".join(pyspark.__version__.split(".")[:2])
    return f"io.delta:delta-spark_{spark}_{SCALA}:{version('delta-spark')}"


def delta_jars() -> list[str]:
    """Paths of Delta's jars. The first call on a machine downloads them through Ivy.

    Raises EngineError `jars-unresolved`.
    """
    names = [*delta_coordinate().split(":")[1:], pyspark.__version__]
    listed = cache_folder() / f"jars-{'-'.join(names)}.txt"
    if listed.exists():
        jars = listed.read_text(encoding="utf-8").splitlines()
        if jars and all(Path(jar).exists() for jar in jars):
            return jars
    jars = _resolve()
    write_whole(listed, "\n".join(jars) + "\n")
    return jars


def _resolve() -> list[str]:
    """Starts a JVM without Spark, only for its launcher to resolve the names."""
    conf = SparkConf(loadDefaults=False).set("spark.jars.packages", delta_coordinate())
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        try:
            gateway = _launch(conf, {"stdout": log, "stderr": log})
        except Exception as error:
            log.seek(0)
            raise EngineError(
                "jars-unresolved",
                f"Delta's jars ({delta_coordinate()}) could not be resolved: {_cause(log.read())}",
                "the first start needs a Maven repository: connect, or name a mirror in "
                "spark.jars.ivySettings of conf/spark-defaults.conf, and start again",
            ) from error
        names = gateway.jvm.System.getProperty("spark.jars") or ""
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=60)
    ours = {_artifact(Path(jar).name) for jar in Path(pyspark.__file__).parent.glob("jars/*.jar")}
    jars = [jar.removeprefix("file://") for jar in names.split(",") if jar]
    return [jar for jar in jars if _artifact(Path(jar).name.split("_", 1)[1]) not in ours]


def _artifact(file: str) -> str:
    """`delta-storage-4.4.0.jar` -> `delta-storage`."""
    words = file.removesuffix(".jar").split("-")
    while len(words) > 1 and words[-1][:1].isdigit():
        words.pop()
    return "-".join(words)


def _cause(log: str) -> str:
    """The line of Ivy's log that says most."""
    lines = [line.strip() for line in log.splitlines()]
    told = [n for n in lines if "unresolved dependency" in n or "Exception" in n or "Error" in n]
    return (told or lines or ["no output"])[0]
