"""The engine's `now`: a clock that never goes back (G3)."""

from __future__ import annotations

import threading

from tidegate.engine.core.ports import Clock


class Now:
    """now = max(wall clock, the last `now` + monotonic time since), microseconds.

    It starts from the greatest `now` ever stored, or the wall clock where that is later; so a wall
    clock set back by an hour stalls nothing and repeats nothing, nor does one that was an hour
    ahead for a moment. For use by several threads.
    """

    def __init__(self, clock: Clock, stored: int) -> None:
        self._clock = clock
        self._base = stored - clock.monotonic()
        self._asking = threading.Lock()

    def __call__(self) -> int:
        with self._asking:
            steady = self._clock.monotonic()
            self._base = max(self._base, self._clock.wall() - steady)
            return self._base + steady
