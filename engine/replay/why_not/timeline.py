"""What came for the key, on a time line: occurrences by event type, the rows that became none, and
when the rule was detected.

Example: `large ; large within 5 min` for card 7 has one lane, `large`, with marks at 9:00:00 and
9:05:12, and a row of 9:03:00 that `where` dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.engine.core.event_names import is_tick
from tidegate.engine.core.values import Int64
from tidegate.engine.replay.why_not.arrivals import Arrivals
from tidegate.engine.replay.why_not.evidence import Asked
from tidegate.engine.replay.why_not.fate import Firing
from tidegate.engine.replay.why_not.probe import Probe

MARKS_MAX = 60
"""Marks of one kind in a lane: the last ones up to the instant, and some after it."""
_AFTER_MAX = 5
CAME, DROPPED, REJECTED = "came", "was dropped by `where` or `of`", "was rejected"


class Mark(NamedTuple):
    """Something at an instant, microseconds, in the lane of an event type: `CAME`, `DROPPED` or
    `REJECTED`."""

    event: str
    instant: int
    kind: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """`lanes`: the event types. `left_out`: how many marks are not drawn. `detected`: the ends of
    the rule's detections."""

    lanes: Sequence[str]
    marks: Sequence[Mark]
    detected: Sequence[int] = ()
    left_out: int = 0


NOTHING = Timeline((), ())
"""Nothing was looked at."""


def of_firing(firing: Firing) -> Timeline:
    """The constituents of a kept firing."""
    rows = firing.relation
    if not {"event_type", "occurred_at"} <= {*rows.column_names}:
        return NOTHING
    instants = rows["occurred_at"].cast(pa.int64()).to_pylist()[-MARKS_MAX:]
    events = rows["event_type"].to_pylist()[-MARKS_MAX:]
    marks = [
        Mark(event, instant, CAME)
        for event, instant in zip(events, instants, strict=True)
        if event is not None and instant is not None and not is_tick(event)
    ]
    lanes = tuple(dict.fromkeys(mark.event for mark in marks))
    return Timeline(lanes, marks, (firing.end,), len(rows) - len(instants))


def of_sources(asked: Asked, probe: Probe, arrivals: Arrivals) -> Timeline:
    """What the sources hold for the key."""
    marks, left_out = list[Mark](), 0
    for event, kind, instants in _each(probe, arrivals):
        drawn = _near(instants, asked.until)
        left_out += len(instants) - len(drawn)
        marks += (Mark(asked.written(event), int(each), kind) for each in drawn)
    ends = _near(probe.detected.end, asked.until)
    lanes = dict.fromkeys(asked.written(event) for event in arrivals.events)
    return Timeline(tuple(lanes), marks, tuple(ends.tolist()), left_out)


def _each(probe: Probe, arrivals: Arrivals) -> Iterator[tuple[str, str, Int64]]:
    for event in arrivals.events:
        yield event, CAME, probe.instants(event)
        if event in arrivals.dropped:
            yield event, DROPPED, arrivals.instants(arrivals.dropped[event])
        if event in arrivals.refused:
            yield event, REJECTED, arrivals.instants(arrivals.refused[event])


def _near(instants: Int64, until: int) -> Int64:
    """The last instants up to one, and a few after it."""
    end = int(np.searchsorted(instants, until, side="right"))
    return instants[max(0, end - MARKS_MAX) : end + _AFTER_MAX]
