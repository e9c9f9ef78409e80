"""What a rulebook's engine starts from, and what each bucket leaves in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tidegate.engine.core.entries import Entry
from tidegate.engine.core.values import Carried, Cursor, Firings, Load, Plan, Rejected

MINUTE_MICROS = 60_000_000
ParkingReason = tuple[str, str]
"""Why a rule stops, and a hint."""


@dataclass(frozen=True, slots=True)
class Fired:
    """How often rules fired in a bucket, by rule; `now`: the engine's clock as it was planned."""

    now: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class State:
    """What a rulebook's engine starts from: read once at start, then kept in memory."""

    bucket: int  # number of the last committed bucket, 0 = none
    watermark: int | None  # None before the first plan
    now: int  # greatest `now` ever stored, 0 = none (G3)
    cursors: Mapping[str, Cursor]
    activations: Mapping[str, int]  # by rule
    activation_digests: Mapping[str, str]  # by rule, of (on, per, context)
    carried: Carried
    parked: frozenset[str] = frozenset()  # rules that a limit has stopped (G13)
    disabled: frozenset[str] = frozenset()  # rules that are switched off (G24)
    fired: tuple[Fired, ...] = ()  # within the last minute (G22)

    @property
    def stopped(self) -> frozenset[str]:
        """The rules that detect nothing."""
        return self.parked | self.disabled


@dataclass(frozen=True, slots=True)
class Parked:
    """A rule that a limit stops from `instant` on, until it is enabled (G13)."""

    rule: str
    reason: str
    hint: str
    instant: int


@dataclass(frozen=True, slots=True)
class Taken:
    """A bucket as it is stored: everything of it in one transaction (step 3).

    `digests`: by rule active after the bucket, of what it detects with; a rule that is not in it
    is forgotten. `rows` were read, `seconds` by stage. `parked` are rules that a limit stops from
    here on; `passed_over`: by parked rule, how many occurrences it did not see in this bucket;
    `fired`: what fired within a minute before its `now`, its own firings included; `memory`: by
    rule, what is to be remembered of its firings that passed (`engine.core.damping_memory`);
    `loads`: by rule or script, what it carries on; `misfires`: by clock, how many occurrences were
    passed over.
    """

    plan: Plan
    carried: Carried
    digests: Mapping[str, str]
    firings: tuple[Firings, ...] = ()
    entries: tuple[Entry, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    rows: int = 0
    detections: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    parked: tuple[Parked, ...] = ()
    passed_over: Mapping[str, int] = field(default_factory=dict)
    fired: tuple[Fired, ...] = ()
    memory: Mapping[str, pa.Table] = field(default_factory=dict)
    loads: Mapping[str, Load] = field(default_factory=dict)
    misfires: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seen:
    """What was visible at one time: the latest version of each source, when the last signal was
    received, and controls of sources (the others wait until their table is one). What happens by
    itself up to `now` is visible too."""

    now: int
    versions: Mapping[str, int]
    last_received: int | None
    controls: frozenset[int]


@dataclass(frozen=True, slots=True)
class BucketReport:
    """One line of `run --json`. `rejected`: rows and signals that could not become occurrences, and
    faults of scripts."""

    bucket: int
    watermark: int
    rows: int
    rejected: int
    detections: int
    firings: int
    damped: int
    entries: int
    seconds: Mapping[str, float]


STARTING, CATCHING_UP, IDLE, WAITING = "starting", "catching up", "idle", "waiting"
STOPPED = "stopped"
STATES = (STARTING, CATCHING_UP, IDLE, WAITING, STOPPED)
LOOKED = (CATCHING_UP, IDLE, WAITING)
"""The states of an engine that has looked at all of its sources since it began."""


@dataclass(frozen=True, slots=True)
class Activity:
    """One of STATES. Times are microseconds of the engine's clock.

    `doing`: what it waits for; or what it does, while it starts, or where that takes long.
    `commits` and `signals` are visible and not taken, the oldest of them from `oldest`.
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

    def at(self, doing: str) -> Activity:
        """The same while it is at something that takes long."""
        state = CATCHING_UP if self.state == WAITING else self.state
        return replace(self, state=state, doing=doing)
