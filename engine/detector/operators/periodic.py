"""`P(a, [d], c)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.detector import windows
from engine.detector.calendar import add_each, multiples
from engine.detector.instances import Carry, Flow, Instances, Moment, bare, concat, no_pending
from engine.detector.operators.shape import greatest
from rules.expression import Duration


@dataclass(frozen=True, slots=True)
class Periodic:
    """`[[P(a, [d], c)]]` = { the point e(a) + k * d, k >= 1 : the window of a is open }, a tick; a
    window closes at e(c) of the first c with s(c) > e(a), or `own` after e(a). Coincident ticks are
    one (S6).

    Operands: a, and c unless there is an `own` terminator; `role` is that of the ticks,
    `ticks` their type; months count in `zone` (S11). Carries every a whose window is open, as
    [e(a), its last tick]: bound: the a's of open windows. Source: Snoop, `P`.
    """

    period: Duration
    own: Duration | None
    zone: str
    role: int
    ticks: str
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        opener = operands[0].instances
        first = concat([carry[0], bare(opener.key, opener.end, opener.end)])
        close = closes_at(first, operands, self.own, self.zone, moment)
        counts, ticks = multiples(first.start, first.end, close, self.period, self.zone)
        key = np.repeat(first.key, counts)
        points = greatest(bare(key, ticks, ticks).by_end(), moment)
        n = len(points)
        rows = moment.numbering.add_ticks(self.ticks, points.end)
        found = Instances(
            points.key, points.start, points.end,
            np.arange(n + 1), rows, np.full(n, self.role, np.int16),
        )  # fmt: skip
        last = np.where(counts > 0, np.append(ticks, 0)[np.cumsum(counts) - 1], first.end)
        still = open_after(first, operands, self.own, self.zone, moment)
        return Flow(found, no_pending()), (replace(first, end=last).where(still).by_end(),)


def closes_at(
    first: Instances, operands: Sequence[Flow], own: Duration | None, zone: str, moment: Moment
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Until when each opener, whose instant is its start, has ticks in this step."""
    close = _close(first, operands, own, zone, moment)
    closed = close <= moment.watermark
    latest = moment.watermark if own is not None else min(moment.watermark, moment.last)
    return np.where(closed, close, latest)


def open_after(
    first: Instances, operands: Sequence[Flow], own: Duration | None, zone: str, moment: Moment
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Marks the openers whose window is open after this step."""
    return np.asarray(_close(first, operands, own, zone, moment) > moment.watermark)


def _close(
    first: Instances, operands: Sequence[Flow], own: Duration | None, zone: str, moment: Moment
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if own is not None:
        return add_each(first.start, own, zone)
    c = operands[1].instances
    bounds, index = windows.by_key(c.key, moment.keys)
    found: np.ndarray[tuple[int], np.dtype[np.int64]] = windows.closes(
        first.key, first.start, c.start, c.end, bounds, index
    )
    return found
