"""Occurrences of several event types as one timeline, for the walks of the contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tidegate.engine.detector.contexts.stage_timeline import merged
from tidegate.engine.detector.instances import Bools, Instances, Int16, Int32, Moment, concat
from tidegate.engine.values import Int64

ENDLESS = 2**62
"""How long an instance may be where nothing says it, microseconds."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Occurrences in the order of a walk: event type (as a role), key code, row, instant; the first
    `carried` are not arrivals. real[code] is the key of a code: those that an occurrence of an
    absent event type has ended have codes of their own; last[key] is the one that has not ended."""

    source: Int16
    code: Int32
    row: Int64
    time: Int64
    carried: int
    real: Int64
    last: Int64

    def instances(self, code: Int32, offsets: Int64, positions: Int64) -> Instances:
        """Instances of occurrences given by their positions."""
        return Instances(
            self.real[code].astype(np.int32),
            self.time[positions[offsets[:-1]]],
            self.time[positions[offsets[1:] - 1]],
            offsets,
            self.row[positions],
            self.source[positions],
        )

    def lasting(self, kept: Instances, code: Int32) -> Instances:
        """What has not been ended."""
        return kept.where(np.asarray(self.last[kept.key] == code))


def timeline(
    parts: Sequence[Instances],
    order: Sequence[int],
    absent: int,
    stored: Instances,
    moment: Moment,
    *,
    apart: bool,
) -> Timeline:
    """The entries of what is stored, then the arrivals of each event type, in order of time; of one
    instant those with the highest `order` first. See `stage_timeline.merged` for the rest."""
    parts = [in_order(part, moment) for part in parts]
    bounds = np.cumsum([0, *(len(part) for part in parts)])
    whole = concat(parts)
    source, code, at, real, last = merged(
        bounds, np.array(order, dtype=np.int64), absent, apart,
        whole.key, whole.end, moment.rank[whole.row], whole.row, moment.keys,
    )  # fmt: skip
    owner = np.repeat(stored.key, np.diff(stored.offsets))
    return Timeline(
        np.concatenate([stored.role, source]),
        np.concatenate([owner, code]),
        np.concatenate([stored.row, whole.row[at]]),
        np.concatenate([moment.time[stored.row], whole.end[at]]),
        len(stored.row),
        real,
        last,
    )


def ordered(stored: Instances, moment: Moment, *, last: bool = False) -> Instances:
    """What is carried, in the order of its first or last occurrences."""
    row = stored.row[stored.offsets[1:] - 1 if last else stored.offsets[:-1]]
    return stored.take(np.lexsort((row, moment.rank[row], moment.time[row])))


def by_rank(found: Instances, moment: Moment) -> Instances:
    """The entries in order of (time, rank, row)."""
    time, rank = moment.time[found.row], moment.rank[found.row]
    owner = np.repeat(np.arange(len(found)), np.diff(found.offsets))
    same = owner[1:] == owner[:-1]
    swapped = (time[1:] < time[:-1]) | ((time[1:] == time[:-1]) & (rank[1:] < rank[:-1]))
    if not (same & swapped).any():
        return found
    order = np.lexsort((found.row, rank, time, owner))
    return replace(found, row=found.row[order], role=found.role[order])


def in_order(part: Instances, moment: Moment) -> Instances:
    """Occurrences in order of (time, rank, row)."""
    rank = moment.rank[part.row]
    swapped: Bools = (part.end[1:] == part.end[:-1]) & (rank[1:] < rank[:-1])
    return part.take(np.lexsort((part.row, rank, part.end))) if swapped.any() else part
