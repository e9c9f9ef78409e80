"""Outages of the store, or of a table's storage, are waited out for a while (G7)."""

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
    """Calls what may raise OutageError, again and again with doubling pauses, until it answers or
    has failed for `seconds_max`. `wait` sleeps; `recover` is called before each further try."""

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
    """Looking at a table fails for a reason that may pass, unless the error says which it is."""
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
    """Raises OutageError where an error says that a disk is full, as Python and Java say alike: no
    smaller span of changes has found room on it."""
    if any(words in error.message for words in _FULL):
        hint = "make room under TMPDIR and spark.local.dir; no change of the tables is passed over"
        raise OutageError("disk-full", error.message, hint) from error
