"""Retries while the store, or the storage of a table, is away (G7)."""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from tidegate.engine.core.ports import OutageError
from tidegate.rules.errors import EngineError

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")

_FULL = [os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT)]
_PAUSE_MIN_SECONDS, _PAUSE_MAX_SECONDS = 0.5, 30.0


@dataclass(frozen=True, slots=True)
class Outages:
    """Repeats calls that raise OutageError, with doubling pauses, for up to `seconds_max`. `wait`
    sleeps. `recover` is called before each further try, `tell` before each pause. After `stopped`
    there is no further try."""

    seconds_max: int
    wait: Callable[[float], object]
    recover: Callable[[], None]
    stopped: Callable[[], bool]
    clock: Callable[[], float] = time.monotonic
    tell: Callable[[OutageError], None] = lambda _: None  # called before each pause

    def through(self, call: Callable[[], Answer]) -> Answer:
        """The answer of `call`. Raises the OutageError that lasted too long."""
        begun: float | None = None
        pause = _PAUSE_MIN_SECONDS
        while True:
            try:
                if begun is not None:
                    self.recover()
                return call()
            except OutageError as error:
                now = self.clock()
                begun = now if begun is None else begun
                if now + pause - begun > self.seconds_max or self.stopped():
                    raise
                log.warning("%s\n    trying again in %.1f s", error.message, pause)
                self.tell(error)
            self.wait(pause)
            pause = min(2 * pause, _PAUSE_MAX_SECONDS)


@contextmanager
def looking_at_tables() -> Iterator[None]:
    """Turn the errors of looking at tables into OutageErrors, but for EngineErrors that say a
    lasting reason: any code except `table-unreadable`."""
    try:
        yield
    except EngineError as error:
        if error.code != "table-unreadable":
            raise
        raise OutageError(error.code, error.message, error.hint) from error
    except Exception as error:
        message = f"a table cannot be looked at: {type(error).__name__}: {error}"
        raise OutageError("table-unreadable", message, "see to its storage, run again") from error


def check_room(error: EngineError) -> None:
    """Raise OutageError if an error says that a disk is full. Python and Java use the same words.
    By then even the smallest span of changes did not fit."""
    if any(words in error.message for words in _FULL):
        hint = "make room under TMPDIR and spark.local.dir; no change of the tables is passed over"
        raise OutageError("disk-full", error.message, hint) from error
