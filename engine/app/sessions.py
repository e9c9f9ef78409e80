"""The Spark session that the engines of one process share."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tidegate.connectors.delta.faults import why_lost
from tidegate.connectors.delta.session import (
    check_session,
    discard_session,
    start_session,
    stop_session,
)
from tidegate.connectors.delta.watchdog import Watchdog, watched
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.text.logs import nobodys
from tidegate.engine.quarantine.turns import GATE, Gate
from tidegate.rules.errors import EngineError

log = logging.getLogger(__name__)
HOUR_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """How a session is found, started, looked at, and ended."""

    active: Callable[[], SparkSession | None] = SparkSession.getActiveSession
    start: Callable[[str, Mapping[str, str]], SparkSession] = start_session
    check: Callable[[SparkSession], None] = check_session
    watch: Callable[[SparkSession], Watchdog | None] = watched
    why_lost: Callable[[SparkSession], EngineError | None] = why_lost
    discard: Callable[..., None] = discard_session
    stop: Callable[[SparkSession], None] = stop_session


class Sessions:
    """A session that the user gives, or one of our own. Our own is started by the first `get`,
    started again by `again` after it has ended, and stopped by `close`. Several threads may use it.

    Example: two engines use one session, and Java is killed. Both notice. The first of them that
    calls `again` starts another session; the second gets that one.
    """

    def __init__(
        self,
        given: SparkSession | None,
        conf: Mapping[str, str],
        lifecycle: Lifecycle | None = None,
        gate: Gate = GATE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spark = given
        self._conf = dict(conf)
        self._lifecycle = lifecycle or Lifecycle()
        self._gate, self._clock = gate, clock
        self.own = False  # started here
        self._lock = threading.Lock()
        self._restarts: deque[float] = deque()
        self._watchdog: Watchdog | None = None

    def get(self) -> SparkSession:
        """The session. Raises EngineError, see `start_session`."""
        with self._lock, nobodys():
            if self._spark is None:
                self.own = self._lifecycle.active() is None
                self._spark = self._started()
            else:
                self._lifecycle.check(self._spark)
            return self._spark

    def again(self, ended: SparkSession, reason: EngineError, most: int) -> SparkSession:
        """Another session in place of one that has ended, or that has no free slot left.

        Where a suspect explains the end, the restart is not counted. Of other restarts, `most` are
        allowed in an hour; 0 allows none of either. Raises `reason` where there were as many, and
        where the session is the user's.
        """
        lifecycle = self._lifecycle
        with self._lock, nobodys():
            if self._spark is not None and self._spark is not ended:
                return self._spark
            if not self.own or not most:
                raise reason
            counted = (
                "what ran then is suspected" if self._gate.take_blame() else self._counted(most)
            )
            if counted is None:
                raise reason
            log.warning("%s\n    starting it again (%s)", reason.message, counted)
            if self._watchdog is not None:
                self._watchdog.close()
            lifecycle.discard(ended, with_java=lifecycle.why_lost(ended) is None)
            self._spark = None
            self._spark = self._started()
            failpoint("spark.restart")
            return self._spark

    def _started(self) -> SparkSession:
        found = self._lifecycle.start("tidegate", self._conf)
        if self.own:
            self._watchdog = self._lifecycle.watch(found)
        return found

    def _counted(self, most: int) -> str | None:
        """Count a restart that no suspect explains. None if there were `most` in the last hour."""
        now = self._clock()
        while self._restarts and self._restarts[0] <= now - HOUR_SECONDS:
            self._restarts.popleft()
        if len(self._restarts) >= most:
            return None
        self._restarts.append(now)
        return f"{len(self._restarts)} of {most}"

    def close(self) -> None:
        """Stop the session if it is our own."""
        with self._lock:
            if self._watchdog is not None:
                self._watchdog.close()
            if self.own and self._spark is not None:
                self._lifecycle.stop(self._spark)
                self._spark = None
