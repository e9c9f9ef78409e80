"""The engine's `now`: a clock that never goes back (G3)."""

from __future__ import annotations

from tidegate.engine.ports import Clock


class Now:
    """now = max(wall clock, the `now` it started from + monotonic time since), microseconds.

    It starts from the greatest `now` ever stored, or the wall clock where that is later; so a wall
    clock set back by an hour stalls nothing and repeats nothing.
    """

    def __init__(self, clock: Clock, stored: int) -> None:
        self._clock = clock
        self._base = max(stored, clock.wall()) - clock.monotonic()

    def __call__(self) -> int:
        return max(self._clock.wall(), self._base + self._clock.monotonic())
