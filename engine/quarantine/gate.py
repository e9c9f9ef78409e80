"""Turns at the one Spark of a process: many at a time, or one alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

DEATHS_IN_A_ROW_MAX = 10
"""After so many deaths, and nothing that ran cleanly between them, it is the machine's fault."""


class Gate:
    """Lets texts run in Spark. All engines of a process share one, as they share one Java.

    Example: two statements run; a suspect comes and waits; a third statement waits behind it. The
    two end, the suspect runs alone, and then the third.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._alone = False
        self._wanting = 0  # suspects that wait for the others to end
        self._replaced = 0  # how often Spark was ended on purpose
        self._blamed = False  # a suspect was found for Spark's end
        self._deaths = 0  # in a row

    @contextmanager
    def turn(self, *, alone: bool) -> Iterator[Callable[[], bool]]:
        """A turn; alone, or beside others. Gives whether Spark was ended on purpose meanwhile: that
        is no fault of what ran."""
        with self._changed:
            self._wanting += alone
            try:
                self._changed.wait_for(lambda: self._free(alone))
            finally:
                self._wanting -= alone
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

    def _free(self, alone: bool) -> bool:
        if alone:
            return not self._running
        return not self._alone and not self._wanting


GATE = Gate()
"""The gate of this process."""
