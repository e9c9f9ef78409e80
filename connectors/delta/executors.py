"""Functions run by Spark's executors, over values that are sent there and back as bytes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from tidegate.connectors.delta.faults import SPARK_ERRORS, check_alive, fault
from tidegate.connectors.delta.jobs import Jobs
from tidegate.rules.errors import EngineError

Given = TypeVar("Given")
Made = TypeVar("Made")
PACKAGE = "tidegate"
_TRACEBACK = "Traceback (most recent call last):"


class ExecutorsError(Exception):
    """A call failed in Spark's executors, or none was left to run it. The message is one line."""


class SparkExecutors:
    """The executors of a session. A call that takes longer than `seconds_max` is cancelled."""

    def __init__(self, spark: SparkSession, jobs: Jobs, seconds_max: int) -> None:
        self._context = spark.sparkContext
        self._jobs = jobs
        self._seconds_max = seconds_max

    @property
    def slots(self) -> int:
        return self._jobs.slots.count

    def map(self, call: Callable[[Given], Made], given: Sequence[Given]) -> list[Made]:
        """See `engine.core.ports.Executors.map`. Raises EngineError `executors-differ`,
        `spark-lost`; ExecutorsError; `OverrunError`."""
        sent = [pickle.dumps(value, protocol=5) for value in given]
        run = partial(_called, _version(), pickle.dumps(call, protocol=5))
        if not sent:
            return []
        try:
            found = self._jobs.run(
                self._seconds_max,
                lambda: self._context.parallelize(sent, len(sent)).map(run).collect(),
            )
        except SPARK_ERRORS as error:
            check_alive(error)
            said = fault(error)
            if f"No module named '{PACKAGE}'" in said.details:
                raise _differ("lack it") from error
            raise ExecutorsError(_reason(said.details, said.message)) from error
        other = next((text for text, made in found if made is None), None)
        if other is not None:
            raise _differ(f"have {other}")
        return [pickle.loads(made) for _, made in found if made]  # noqa: S301, sent by ours


def _called(wanted: str, call: bytes, given: bytes) -> tuple[str, bytes | None]:
    """In an executor: the version that it has, and what the call gives, unless that is another
    version."""
    own = _version()
    if own != wanted:
        return own, None
    value = pickle.loads(given)  # noqa: S301, sent by the engine
    return own, pickle.dumps(_function(call)(value), protocol=5)


@lru_cache(maxsize=2)
def _function(packed: bytes) -> Callable[[Any], Any]:
    """A function that a worker was sent; for the tasks that follow in the same worker, too."""
    found: Callable[[Any], Any] = pickle.loads(packed)  # noqa: S301, sent by the engine
    return found


def _version() -> str:
    """The version of this package here."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:  # a checkout on PYTHONPATH
        return "an unknown version"


def _differ(how: str) -> EngineError:
    return EngineError(
        "executors-differ",
        f"the engine has {PACKAGE} {_version()}, and Spark's executors {how}",
        f"install {PACKAGE} {_version()} where executors run Python (spark.pyspark.python, or "
        "spark.archives), or say `detect: driver`",
    )


def _reason(details: str, message: str) -> str:
    """What is known of a failure without values of the user's tables: of an error in Python, its
    class."""
    if _TRACEBACK not in details:
        return f"Spark's executors failed: {message}"
    last = details.rpartition(_TRACEBACK)[2].splitlines()
    kinds = (line.partition(":")[0] for line in last if line and not line[0].isspace())
    return f"Spark's executors failed with {next(kinds, 'an error')}"
