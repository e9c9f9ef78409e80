"""Turns at the one Spark of a process: many at a time, or one alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from tidegate.rules.errors import EngineError

DEATHS_IN_A_ROW_MAX = 10
"""After so many deaths, and nothing that ran cleanly between them, it is the machine's fault."""
SHUT_SECONDS, CYCLE_SECONDS = 5.0, 30.0
"""In the first seconds of each cycle of its waiting nobody begins before a suspect. In the others
they do: what it waits for may take an hour, and they need not wait for that."""
WAIT_SECONDS_MAX = 3_600.0
"""After so long nobody begins before a suspect any more: it runs at last."""
LOOK_SECONDS = 0.5  # how often those who wait ask whether they are to


class Gate:
    """Lets texts run in Spark. All engines of a process share one, as they share one Java.

    Example: two statements run; a suspect comes and waits; a third statement waits behind it. The
    two end, the suspect runs alone, and then the third. Where one of the two goes on for a minute,
    the third begins after five seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._running = 0
        self._alone = False
        self._waiting: list[float] = []  # since when suspects wait for the others to end
        self._replaced = 0  # how often Spark was ended on purpose
        self._blamed = False  # a suspect was found for Spark's end
        self._deaths = 0  # in a row

    @contextmanager
    def turn(
        self, *, alone: bool, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[Callable[[], bool]]:
        """A turn; alone, or beside others. Gives whether Spark was ended on purpose meanwhile: that
        is no fault of what ran. Raises EngineError `stopped` where it would still have to wait."""
        with self._changed:
            with self._awaited() if alone else nullcontext():
                while not self._free(alone):
                    if stopped():
                        message = "the engine was stopped while a text waited for its turn in Spark"
                        raise EngineError("stopped", message, "nothing is lost: run again")
                    self._changed.wait(LOOK_SECONDS)
            self._running += 1
            self._alone = alone
            begun = self._replaced
        try:
            yield lambda: self._replaced != begun
        finally:
            with self._changed:
                self._running -= 1
                self._alone = False
                self._changed.notify_all()

    def replace(self) -> None:
        """Say that Spark is to be ended on purpose."""
        with self._changed:
            self._replaced += 1
            self._blamed = True

    def died(self) -> None:
        """Say that Spark has ended while a suspect ran."""
        with self._changed:
            self._deaths += not self._blamed  # all that ran beside it say so of one end
            self._blamed = True

    def clean(self) -> None:
        """Say that a text has ended cleanly."""
        self._deaths = 0

    def take_blame(self) -> bool:
        """Whether Spark's end has a suspect, so that another start costs nothing. One that runs
        still has not noticed yet."""
        with self._changed:
            blamed = (self._blamed or self._running > 0) and self._deaths < DEATHS_IN_A_ROW_MAX
            self._blamed = False
        return blamed

    @contextmanager
    def _awaited(self) -> Iterator[None]:
        """A suspect waits."""
        since = self._clock()
        self._waiting.append(since)
        try:
            yield
        finally:
            self._waiting.remove(since)

    def _free(self, alone: bool) -> bool:
        if alone:
            return not self._running
        return not self._alone and not self._shut()

    def _shut(self) -> bool:
        """Whether nobody begins before a suspect that waits."""
        if not self._waiting:
            return False
        waited = self._clock() - min(self._waiting)
        return waited % CYCLE_SECONDS < SHUT_SECONDS or waited >= WAIT_SECONDS_MAX


GATE = Gate()
"""The gate of this process."""
