"""What an engine does just now, for those who look at it from outside."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

STARTING, CATCHING_UP, IDLE, WAITING = "starting", "catching up", "idle", "waiting"
STOPPING, STOPPED = "stopping", "stopped"
STATES = (STARTING, CATCHING_UP, IDLE, WAITING, STOPPING, STOPPED)
LOOKED = (CATCHING_UP, IDLE, WAITING)
"""The states of an engine that has looked at all of its sources since it began."""


@dataclass(frozen=True, slots=True)
class Activity:
    """One of STATES. Times are microseconds of the engine's clock.

    `doing`: what it waits for; or what it does, while it starts or stops, or where that takes long.
    `commits` and `signals` are visible and not taken, the oldest of them from `oldest`, where it
    `knows`.
    `losing_since`: since when it loses ground (`engine.loop.pace`). `next_timer`: when something
    happens by itself next. `looked_at`: when it looked at its sources last; up to `seen_until`
    nothing is left to take. Two that differ in these alone are the same: they change with every
    look.
    """

    state: str
    doing: str = ""
    commits: int = 0
    signals: int = 0
    oldest: int | None = None
    losing_since: int | None = None
    next_timer: int | None = None
    looked_at: int | None = field(default=None, compare=False)
    seen_until: int | None = field(default=None, compare=False)

    @property
    def knows(self) -> bool:
        """Whether it has looked, so that it says what is not taken."""
        return self.state in (CATCHING_UP, IDLE) or self.looked_at is not None

    @property
    def ready(self) -> bool:
        """Whether it has taken a first look, and goes on."""
        return self.state in LOOKED

    def ending(self, doing: str = "") -> Activity:
        """The same of an engine that was asked to stop; `doing`: what it still does."""
        return replace(self, state=STOPPING, doing=doing)

    def at(self, doing: str) -> Activity:
        """The same while it is at something that takes long."""
        state = CATCHING_UP if self.state == WAITING else self.state
        return replace(self, state=state, doing=doing)
