"""A limit on how long a statement may run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def deadline(session: SparkSession, seconds: int) -> Iterator[None]:
    """Once `seconds` have passed, cancel the jobs of `session` for as long as it starts any."""
    ended = threading.Event()

    def cancel() -> None:
        if not ended.wait(seconds):
            session.interruptAll()
            while not ended.wait(1):  # a statement may have been between two jobs
                session.interruptAll()

    threading.Thread(target=cancel, daemon=True).start()
    try:
        yield
    finally:
        ended.set()
