"""What is being done, told on the log while it takes long."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tidegate.engine.whose import thread_of

log = logging.getLogger(__name__)

FIRST_SECONDS = 10.0  # then after twice as long, and so on
LOOK_SECONDS = 1.0
QUIET_SECONDS = 60.0  # until an idle engine is told of; then after twice as long
QUIET_SECONDS_MAX = 3600.0
COLUMNS_TOLD_MAX = 80  # of the tables that are watched; time and words stand before them

STAGES = {
    "plan": "looking for new commits",
    "capture": "reading changes",
    "detect": "detecting",
    "evaluate": "asking conditions",
    "commit": "writing to the store",
    "act": "running actions",
}
"""What the stages of a bucket do."""

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
    thread = thread_of(_tell, now, ended, name="doing")
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


class Quiet:
    """Tells now and then of an engine that has nothing to do."""

    def __init__(self) -> None:
        self.over()

    def over(self) -> None:
        """Something was done."""
        self._since = time.monotonic()
        self._due = QUIET_SECONDS
        self._pause = QUIET_SECONDS

    def go_on(self, waiting: bool) -> None:
        """Nothing was done; `waiting`: some action waits for its next attempt."""
        seconds = time.monotonic() - self._since
        if seconds >= self._due:
            self._pause = min(2 * self._pause, QUIET_SECONDS_MAX)
            self._due = seconds + self._pause
            more = "; an action waits for its next attempt" if waiting else ""
            log.info("idle: nothing new for %.0f min%s", seconds / 60, more)


def watching_text(versions: Mapping[str, int]) -> str:
    """What an engine looks at: by table, the version that it reads next."""
    if not versions:
        return "watching for signals"
    names = sorted(versions)
    told = f"watching {len(names)} table{'' if len(names) == 1 else 's'} from version: "
    for number, name in enumerate(names):
        one = f"{', ' if number else ''}{name} {versions[name]}"
        if number and len(told) + len(one) > COLUMNS_TOLD_MAX - len(", .."):
            return f"{told}, .."
        told += one
    return told
