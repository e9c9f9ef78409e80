"""What an engine does now, as `status` and monitors show it; what became of a firing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

STARTING, CATCHING_UP, IDLE, WAITING = "starting", "catching up", "idle", "waiting"
STOPPING, STOPPED = "stopping", "stopped"
STATES = (STARTING, CATCHING_UP, IDLE, WAITING, STOPPING, STOPPED)
LOOKED = (CATCHING_UP, IDLE, WAITING)
"""The states of an engine that has looked at all of its sources since it started."""

FIRING_STATES = ("pending", "held", "dead", "done", "skipped", "redriven", "failed", "damped")
"""What firings are listed by: the state of an entry, `failed` (the condition does not hold), or
`damped`."""

DRIVER, EXECUTORS = "driver", "executors"
"""Who detects a bucket; executors, as far as rules have a key."""
HAS_ROOM = "detect: auto, and the driver has room"
"""Why it is the driver where nothing is to be told of it."""


def detected_by(*, executors: bool) -> str:
    """The name of who detects."""
    return EXECUTORS if executors else DRIVER


@dataclass(frozen=True, slots=True)
class Activity:
    """`state` is one of STATES. Times are microseconds of the engine's clock.

    `doing`: what the engine waits for, or what it does if that takes long. `commits`, `signals`:
    how many are visible and not taken yet; `oldest`: when the first of these came. The three mean
    something only if it `knows`. `losing_since`: since when it loses ground (`engine.loop.pace`).
    `next_timer`: when the next timer or clock is due.

    `looked_at`: when it last looked at its sources. `seen_until`: up to this instant nothing is
    left to take. Both change with every look, so comparisons leave them out.
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
        """Whether it has looked at its sources, so that `commits`, `signals`, `oldest` are
        known."""
        return self.state in (CATCHING_UP, IDLE) or self.looked_at is not None

    @property
    def ready(self) -> bool:
        """Whether it has looked at its sources, and is not stopping."""
        return self.state in LOOKED

    def ending(self, doing: str = "") -> Activity:
        """The same for an engine that was asked to stop. `doing`: what it still does."""
        return replace(self, state=STOPPING, doing=doing)

    def at(self, doing: str) -> Activity:
        """The same while something takes long."""
        state = CATCHING_UP if self.state == WAITING else self.state
        return replace(self, state=state, doing=doing)
