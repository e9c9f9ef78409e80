"""What `A*` and `P*` share: the windows that are closed, and what they hold."""

from __future__ import annotations

import numpy as np

from tidegate.engine.detector import windows
from tidegate.engine.detector.instances import Instances, Moment
from tidegate.engine.detector.operators.opened import last_before
from tidegate.engine.values import Int64


def closed(
    first: Instances, c: Instances, moment: Moment, *, ties: bool
) -> tuple[Int64, Int64, Int64, Int64]:
    """For each c the last opener that ended before it, and of the windows that it closes the
    opener of the greatest (-1 = none); for each opener the last greater one before it (`ties`: or
    one that starts with it); and when the last c of each key started."""
    chain = windows.previous_greater(
        first.key, first.start, first.offsets, first.row,
        moment.start, moment.rank, moment.keys, ties,
    )  # fmt: skip
    low, latest = windows.closed_before(c.key, c.start, moment.keys)
    at, _ = last_before(first, c.key, c.start, moment.keys)
    return at, windows.climb(at, chain, first.end, low), chain, latest


def due(close: Int64, moment: Moment) -> Int64:
    """The windows that close by the watermark, in order of their close."""
    found = np.flatnonzero(close <= moment.watermark)
    end = close[found]
    moment.timers.fire(end)
    # a month later may be earlier: local times are repeated
    return found[np.argsort(end, kind="stable")] if (end[1:] < end[:-1]).any() else found


def settle(
    at: Int64, chain: Int64, first: Instances, left: Int64, inside: Instances, last: Int64,
    before: Int64, c: Instances, right: Int64, moment: Moment,
) -> None:  # fmt: skip
    """Of windows that start alike what they hold decides: changes `left`."""
    windows.settle(
        at, chain, first.start, *_columns(first, left, inside, last, before, c, right, moment)
    )


def filled(
    first: Instances, left: Int64, inside: Instances, last: Int64, before: Int64,
    c: Instances, right: Int64, moment: Moment,
) -> Instances:  # fmt: skip
    """The windows of openers left[n] and closers right[n], with what is inside: last[n], and what
    is before that, back to the opener."""
    entries = windows.contents(*_columns(first, left, inside, last, before, c, right, moment))
    return Instances(c.key[right], first.start[left], c.end[right], *entries)


def _columns(
    first: Instances, left: Int64, inside: Instances, last: Int64, before: Int64,
    c: Instances, right: Int64, moment: Moment,
) -> tuple[np.ndarray[tuple[int], np.dtype[np.generic]], ...]:  # fmt: skip
    """As `windows.contents` takes them."""
    return (
        left, right, last, before, first.end, first.offsets, first.row, first.role,
        inside.start, inside.end, inside.offsets, inside.row, inside.role,
        c.start, c.offsets, c.row, c.role, moment.start, moment.rank,
    )  # fmt: skip
