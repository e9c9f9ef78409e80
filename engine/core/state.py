"""What a rulebook's engine starts from, and what each bucket leaves in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from tidegate.engine.core.entries import Entry
from tidegate.engine.core.lifecycle import DRIVER
from tidegate.engine.core.state_parts import Shelf
from tidegate.engine.core.values import Carried, Cursor, Firings, Load, Plan, Rejected

MINUTE_MICROS = 60_000_000
ParkingReason = tuple[str, str]
"""Why a rule stops, and a hint."""


@dataclass(frozen=True, slots=True)
class Fired:
    """How often each rule fired in a bucket. `now`: the engine's clock when it was planned."""

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
    begun_at: int | None = None  # `now` of the first bucket that is known

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
class StoredBucket:
    """A bucket as it is stored, in one transaction (step 3).

    `digests`: by rule that is active after the bucket, the digest of what it detects with. Other
    rules are forgotten. `rows`: how many were read. `seconds`: by stage. `parked`: rules that a
    limit stops from here on. `passed_over`: by parked rule, how many occurrences it did not see in
    this bucket. `fired`: the firings within a minute before the plan's `now`, the bucket's own
    included. `memory`: by rule, the rows that damping remembers (`engine.core.damping_memory`).
    `loads`: by rule or script, what it carries. `misfires`: by clock, how many occurrences were
    passed over. `shelf`: where large parts of what is carried are written; None: nowhere.
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
    shelf: Shelf | None = None


@dataclass(frozen=True, slots=True)
class SourceSnapshot:
    """What was visible at one time: the latest version of each source, when the last signal was
    received, and the controls that a bucket carries out. Timers up to `now` are visible, too. A
    reset of a table that raises no events is left out: it waits until the table does."""

    now: int
    versions: Mapping[str, int]
    last_received: int | None
    controls: frozenset[int]


@dataclass(frozen=True, slots=True)
class BucketReport:
    """One line of `run --json`. `rejected`: how many rows and signals could not become occurrences,
    with the faults of scripts. `firings`: those too whose condition failed, and those that were
    damped. `detected_by`: `driver` or `executors`; `because`: why."""

    bucket: int
    watermark: int
    rows: int
    rejected: int
    detections: int
    firings: int
    damped: int
    entries: int
    seconds: Mapping[str, float]
    detected_by: str = DRIVER
    because: str = ""
