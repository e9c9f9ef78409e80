"""Turns at the one Spark of a process: many texts at a time, or one alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tidegate.engine.core.ports import StoppedError

DEATHS_IN_A_ROW_MAX = 10
"""So many deaths, without a clean run in between, are the machine's fault."""
SHUT_SECONDS, CYCLE_SECONDS = 5.0, 30.0
"""While a suspect waits, others may not begin in the first seconds of each cycle. In the rest of
the cycle they may: what the suspect waits for may take an hour."""
WAIT_SECONDS_MAX = 3_600.0
"""After a suspect has waited so long, nobody begins before it."""
LOOK_SECONDS = 0.5  # how often those who wait ask whether they are to


@dataclass(frozen=True, slots=True, eq=False)
class _Ticket:
    """A waiting text, and since when it waits."""

    since: float


class Gate:
    """Lets texts run in Spark. All engines of a process share one, as they share one Java.

    Example: two statements run; a suspect comes and waits; a third statement waits behind it. The
    two end, the suspect runs alone, and then the third, even if another suspect has come. Where one
    of the two goes on for a minute, the third begins after five seconds.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, look_seconds: float = LOOK_SECONDS
    ) -> None:
        self._clock, self._look_seconds = clock, look_seconds
        self._changed = threading.Condition()
        self._running = 0
        self._alone = False
        self._suspects: list[_Ticket] = []  # wait for the others to end; the first is next
        self._others: list[_Ticket] = []  # wait for a suspect
        self._owed: list[_Ticket] = []  # waited while a suspect ran; run before the next suspect
        self._replaced = 0  # how often Spark was ended on purpose
        self._blamed = False  # Spark's end has a suspect
        self._deaths = 0  # in a row

    @contextmanager
    def turn(
        self, *, alone: bool, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[Callable[[], bool]]:
        """A turn, alone or beside others. The context's value says whether Spark was ended on
        purpose since, which is no fault of what ran. Raises StoppedError if it still waits when
        `stopped`."""
        with self._changed:
            with self._ticket(self._suspects if alone else self._others) as ticket:
                while not self._free(ticket, alone=alone):
                    if stopped():
                        raise StoppedError("while a text waited for its turn in Spark")
                    self._changed.wait(self._look_seconds)
            self._running += 1
            self._alone = alone
            begun = self._replaced
        try:
            yield lambda: self._replaced != begun
        finally:
            with self._changed:
                self._running -= 1
                if alone:
                    self._owed = [*self._others]
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
        """Whether Spark's end has a suspect, so that another start does not count as an attempt.
        Texts that still run have not noticed the end yet: they are suspects, too."""
        with self._changed:
            blamed = (self._blamed or self._running > 0) and self._deaths < DEATHS_IN_A_ROW_MAX
            self._blamed = False
        return blamed

    @contextmanager
    def _ticket(self, queue: list[_Ticket]) -> Iterator[_Ticket]:
        """A context in which a text waits in a queue."""
        ticket = _Ticket(self._clock())
        queue.append(ticket)
        try:
            yield ticket
        finally:
            queue.remove(ticket)
            if ticket in self._owed:
                self._owed.remove(ticket)
                self._changed.notify_all()

    def _free(self, ticket: _Ticket, *, alone: bool) -> bool:
        if alone:
            return not self._running and not self._owed and ticket is self._suspects[0]
        return not self._alone and (ticket in self._owed or not self._shut())

    def _shut(self) -> bool:
        """Whether nobody may begin before the waiting suspect."""
        if not self._suspects:
            return False
        waited = self._clock() - self._suspects[0].since
        return waited % CYCLE_SECONDS < SHUT_SECONDS or waited >= WAIT_SECONDS_MAX


GATE = Gate()
"""The gate of this process."""
