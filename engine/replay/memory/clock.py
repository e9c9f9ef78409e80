"""Virtual time: a clock that goes as it is told, and a loop that is led along it.

Example: a rule waits for ten seconds. `advance` by an hour sets the clock ten seconds on, runs the
loop there, and goes on to what is due next, until the hour is over. Nothing sleeps.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.engine.core.clocks import running_clocks
from tidegate.engine.core.instants import after_watermark, ceil_watermark, floor_millisecond
from tidegate.engine.loop.loop import Loop
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook

STOPS_MAX = 100_000  # instants at which something happens, between two steps of a case
_DAY = 86_400_000_000
_DAYS_MAX = 199 * 365  # no clock is asked for more
ROUNDS_MAX = 1_000  # milliseconds for which actions cause each other, after one step


@dataclass(slots=True)
class VirtualClock:
    """A clock, microseconds. It implements `engine.core.ports.Clock`, and is called as a `Now`."""

    at: int

    def __call__(self) -> int:
        return self.at

    def wall(self) -> int:
        return self.at

    def monotonic(self) -> int:
        """Time passes only as it is told."""
        return 0

    def later(self, instant: int) -> None:
        """Go on to an instant, never back."""
        self.at = max(self.at, instant)

    def tick(self) -> None:
        """Go on to the next whole millisecond. Called before each action: so what actions write
        stands 1 ms apart."""
        self.at = after_watermark(self.at)


def advance(loop: Loop, clock: VirtualClock, instant: int) -> None:
    """Let time go on to `instant`. What is due before it happens on the way, each at its own
    instant. What is due at it happens with what is committed at it: `drain` does that.

    Raises EngineError `no-end`.
    """
    _check_clocks(loop.compiled.rulebook, clock.at, instant)
    for _ in range(STOPS_MAX):
        due = min((d for d in (loop.planner.due, loop.runner.due) if d is not None), default=None)
        if due is None or due >= instant:
            clock.later(instant)
            return
        clock.later(due)
        _take(loop)
    raise _no_end()


def _check_clocks(book: Rulebook, begin: int, end: int) -> None:
    """Refuse at once what would be refused after a minute, for it takes so long to stop so often:
    a clock that occurs too often before `end`. Raises EngineError `no-end`."""
    if end - begin < _DAY:
        return
    for clock in running_clocks(book):
        days = min(2 * STOPS_MAX // max(clock.per_day, 1) + 1, _DAYS_MAX)
        if len(clock.instants(begin + 1, min(begin + days * _DAY, end) - 1)) > STOPS_MAX:
            raise _no_end()


def _no_end() -> EngineError:
    return EngineError(
        "no-end",
        f"more than {STOPS_MAX:,} things are due between two steps",
        "let less time go by in one step, or make periods longer",
    )


def drain(loop: Loop, clock: VirtualClock) -> None:
    """Take everything that is visible at the present instant, and what actions cause by it, 1 ms
    later each. Retries and timers of later instants stay. Raises EngineError `no-end`."""
    clock.later(ceil_watermark(floor_millisecond(clock.at)))
    for _ in range(ROUNDS_MAX):
        _take(loop)
        if loop.planner.idle or loop.planner.due is None:
            return
        clock.later(loop.planner.due)
    raise EngineError(
        "no-end",
        f"actions have caused each other {ROUNDS_MAX:,} times after one step",
        "break the loop: ignore_own: true, or a where: that leaves out what actions write",
    )


def _take(loop: Loop) -> None:
    """The buckets that are there at the present instant."""
    while loop.bucket() is not None:
        pass
