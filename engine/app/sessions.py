"""The Spark session of the engines of one process."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping

from pyspark.sql import SparkSession

from tidegate.connectors.delta.session import (
    check_session,
    discard_session,
    start_session,
    stop_session,
)
from tidegate.engine.failpoints import failpoint
from tidegate.rules.errors import EngineError

log = logging.getLogger(__name__)
HOUR_SECONDS = 3_600.0


class Sessions:
    """A session that is given, or one that is started when it is first asked for, started again
    where it has ended, and stopped by `close`. May be used by several threads.

    Example: two engines use one session, and Java is killed. Both notice. The first of them that
    calls `again` starts another session; the second gets that one.
    """

    def __init__(self, given: SparkSession | None, conf: Mapping[str, str]) -> None:
        self._spark = given
        self._conf = dict(conf)
        self.own = False  # started here
        self._lock = threading.Lock()
        self._restarts: deque[float] = deque()

    def get(self) -> SparkSession:
        """Raises EngineError, see `start_session`."""
        with self._lock:
            if self._spark is None:
                self.own = SparkSession.getActiveSession() is None
                self._spark = start_session("tidegate", self._conf)
            else:
                check_session(self._spark)
            return self._spark

    def again(self, ended: SparkSession, reason: EngineError, most: int) -> SparkSession:
        """Another session in place of one that has ended, at most so many in an hour. Raises the
        reason where there have been as many, or the session is not the engine's own."""
        with self._lock:
            if self._spark is not None and self._spark is not ended:
                return self._spark
            now = time.monotonic()
            while self._restarts and self._restarts[0] <= now - HOUR_SECONDS:
                self._restarts.popleft()
            if not self.own or len(self._restarts) >= most:
                raise reason
            self._restarts.append(now)
            number = len(self._restarts)
            log.warning("%s\n    starting it again (%d of %d)", reason.message, number, most)
            discard_session(ended)
            self._spark = None
            self._spark = start_session("tidegate", self._conf)
            failpoint("spark.restart")
            return self._spark

    def close(self) -> None:
        """Stop the session, if it was started here."""
        with self._lock:
            if self.own and self._spark is not None:
                stop_session(self._spark)
                self._spark = None
