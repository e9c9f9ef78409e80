"""Kills a Java that no longer answers: all who wait for it would wait for ever (G7)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from subprocess import Popen
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from tidegate.connectors.delta.faults import why_lost
from tidegate.connectors.delta.slots import Slots
from tidegate.rules.errors import EngineError

log = logging.getLogger(__name__)

SILENT_SECONDS_MAX = 120.0
LOOK_SECONDS = 10.0


class Watchdog:
    """Asks Java a question every `look_seconds`. A Java that does not answer for `silent_seconds`
    is killed: then those who wait for it learn that Spark is gone.

    Example: a signal has stopped Java, or Java waits for a disk that is gone. The deadline of a
    statement does not help there, for it asks Java to cancel the statement.
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
        """End the watch."""
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
    """A watchdog over the Java of a session; None where PySpark did not start that Java."""
    process = getattr(SparkContext._gateway, "proc", None)
    java: Any = spark._jvm
    return None if process is None else Watchdog(lambda: java.System.nanoTime(), process)


@dataclass(frozen=True, slots=True)
class DeltaHealth:
    """The health of one session. `own`: the engine has started it, and may start it again."""

    spark: SparkSession
    slots: Slots
    own: bool

    def lost(self, error: BaseException | None = None) -> EngineError | None:
        """See `Health.lost`. A Spark that will be ended counts as lost already."""
        return self.slots.condemned or why_lost(self.spark, error)

    def overrun(self) -> tuple[bool, EngineError | None]:
        """See `Health.overrun`. Of several slots, one must be left for other jobs."""
        lost, slots = self.slots.lost, self.slots.count
        if not self.own and lost >= slots:
            held = f"tasks that nobody can end hold all {slots} slots of your Spark session"
            return True, EngineError("spark-lost", held, "end the session, and start again")
        if not self.own:
            return lost > 0, None
        if lost < max(1, slots - 1):
            return False, None
        held = f"tasks that nobody can end hold {lost} of Spark's {slots} slots"
        hint = "correct the text named above, which ran in them, or raise statement_seconds_max"
        self.slots.condemned = EngineError("spark-lost", held, hint)
        return False, self.slots.condemned
