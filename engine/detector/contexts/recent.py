"""Context `recent`: the greatest of D (S1)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from engine.detector.contexts.history import Found, History
from engine.detector.contexts.values import Best


def choose(history: History) -> Iterator[Found]:
    """Used up are its occurrences and every older or simultaneous one of the same event types."""
    ending = history.ending(history.choosing(latest=True))
    if not ending:
        return
    start = max(ending)
    entries = max(ending[start].values(), key=_order).entries
    yield start, entries
    chosen = {item for _, item in entries}
    for stream in history.unused:
        newest = max((history.intervals[i][1] for i in stream if i in chosen), default=None)
        if newest is not None:
            history.use_up([i for i in stream if history.intervals[i][1] <= newest])


def _order(best: Best) -> tuple[object, ...]:
    """Of two lists the one that has ended wins."""
    return (*best.times, math.inf), (*best.ranks, (math.inf,))
