"""A limit on how long a statement may run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def deadline(session: SparkSession, seconds: int) -> Iterator[None]:
    """Cancel all jobs of `session` once `seconds` have passed."""
    timer = threading.Timer(seconds, session.interruptAll)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
