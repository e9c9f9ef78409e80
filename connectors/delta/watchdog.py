"""Ends a Java that answers no more: whoever waits for it would wait for ever (G7)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from subprocess import Popen
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

SILENT_SECONDS_MAX = 120.0
LOOK_SECONDS = 10.0


class Watchdog:
    """Asks a Java something, every `look_seconds`. One that does not answer for `silent_seconds` is
    killed: all who wait for it go on then, and learn that Spark is gone.

    Example: Java is stopped by a signal, or waits for a disk that is gone. No deadline of a
    statement ends that, for the deadline asks Java to cancel the statement.
    """

    def __init__(
        self,
        ask: Callable[[], object],
        process: Popen[bytes],
        silent_seconds: float = SILENT_SECONDS_MAX,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._ask, self._process = ask, process
        self._silent_seconds, self._look_seconds = silent_seconds, look_seconds
        self._ended = threading.Event()
        threading.Thread(target=self._watch, name="tidegate-watchdog", daemon=True).start()

    def close(self) -> None:
        """Watch no more."""
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(self._look_seconds) and self._process.poll() is None:
            answered = threading.Event()
            threading.Thread(target=self._asked, args=(answered,), daemon=True).start()
            if answered.wait(self._silent_seconds) or self._ended.is_set():
                continue
            log.error("Spark's Java has not answered for %.0f s: it is ended", self._silent_seconds)
            self._process.kill()

    def _asked(self, answered: threading.Event) -> None:
        with suppress(Exception):  # an error is an answer, too
            self._ask()
        answered.set()


def watched(spark: SparkSession) -> Watchdog | None:
    """A watchdog over the Java of a session; None where PySpark has not started it."""
    process = getattr(SparkContext._gateway, "proc", None)
    java: Any = spark._jvm
    return None if process is None else Watchdog(lambda: java.System.nanoTime(), process)
