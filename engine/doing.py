"""What is being done, told on the log while it takes long."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

FIRST_SECONDS = 10.0  # then after twice as long, and so on
LOOK_SECONDS = 1.0

Stage = tuple[str, float]
"""What is being done, and since when on the monotonic clock, seconds."""


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Tells what is done here when it takes long."""
    begun = time.monotonic()
    with telling(lambda: (what, begun)):
        yield


@contextmanager
def telling(now: Callable[[], Stage | None]) -> Iterator[None]:
    """Tells what `now` says, from a thread, when that is the same for long."""
    ended = threading.Event()
    thread = threading.Thread(target=_tell, args=(now, ended), name="doing", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _tell(now: Callable[[], Stage | None], ended: threading.Event) -> None:
    last: Stage | None = None
    due = FIRST_SECONDS
    while not ended.wait(min(LOOK_SECONDS, FIRST_SECONDS)):
        stage = now()
        if stage != last:
            last, due = stage, FIRST_SECONDS
        if stage is not None and (seconds := time.monotonic() - stage[1]) >= due:
            due *= 2
            log.info("still %s (%.0f s)", stage[0], seconds)
