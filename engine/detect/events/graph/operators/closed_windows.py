"""What `A*` and `P*` share: the windows that are closed, and what they hold."""

from __future__ import annotations

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.operators.open_windows import last_before
from tidegate.engine.detect.events.kernels import openers
from tidegate.engine.detect.events.kernels.contents import Closed, contents
from tidegate.engine.detect.events.occurrences.instances import Instances, Moment


def closed(
    first: Instances, c: Instances, moment: Moment, *, ties: bool
) -> tuple[Int64, Int64, Int64, Int64]:
    """The windows that each c closes.

    Returns for each c the last opener that ended before it, and the opener of the greatest window
    that it closes, -1 = none; for each opener the last greater one before it (`ties`: one that
    starts with it counts as greater); for each key the latest start of a c.
    """
    chain = openers.previous_greater(first.columns, moment.ranks, moment.keys, ties)
    low, latest = openers.closed_before(c.key, c.start, moment.keys)
    at, _ = last_before(first, c.key, c.start, moment.keys)
    return at, openers.climb(at, chain, first.end, low), chain, latest


def due(close: Int64, moment: Moment) -> Int64:
    """The numbers of the windows that close by the watermark, in order of their close."""
    found = np.flatnonzero(close <= moment.watermark)
    end = close[found]
    moment.timers.fire(end)
    # the later opener may close first: where local times are repeated, adding a month changes order
    return found[np.argsort(end, kind="stable")] if (end[1:] < end[:-1]).any() else found


def filled(windows: Closed, moment: Moment) -> Instances:
    """Closed windows as instances, each from its opener's start to its close."""
    key, end = windows.closers.key[windows.right], windows.closers.end[windows.right]
    start = windows.first.start[windows.left]
    return Instances(key, start, end, *contents(windows, moment.ranks))
