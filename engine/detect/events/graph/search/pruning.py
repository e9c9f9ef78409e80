"""Pruning of the streams that are only looked at: intervals that no longer matter are dropped."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from tidegate.engine.detect.events.graph.calendar import add_each
from tidegate.engine.detect.events.kernels.columns import NEVER
from tidegate.engine.detect.events.occurrences.instances import Bools, Instances
from tidegate.rules.expressions.nodes import Duration

Looking = tuple[int, int | Duration]
"""Of an `A(a, b, c)` the streams of a and c, or the length of its own terminator."""


def pruned(
    looked: Sequence[Instances], oldest: int, windows: Collection[Looking], zone: str
) -> list[Instances]:
    """The intervals that may matter to an instance that starts at `oldest` or later. These are the
    intervals that start at `oldest` or later. Of `windows` also each c that ends then, and each a
    whose window is still open then."""
    keep = [part.start >= oldest for part in looked]
    within = [part.end >= oldest for part in looked]
    for number in {number for pair in windows for number in pair if isinstance(number, int)}:
        keep[number] = within[number]
    for opener, closer in windows:
        a = looked[opener]
        if isinstance(closer, Duration):
            still = add_each(a.end, closer, zone) >= oldest
        else:
            still = _open(a, looked[closer].where(~within[closer]))
        keep[opener] = keep[opener] | still
    return [part.where(mark) for part, mark in zip(looked, keep, strict=True)]


def _open(a: Instances, c: Instances) -> Bools:
    """Marks the a's that none of these c's has closed."""
    latest = np.full(max(_most(a), _most(c)) + 1, NEVER, dtype=np.int64)
    np.maximum.at(latest, c.key, c.start)
    return np.asarray(a.end >= np.maximum(latest[a.key], latest[0]))


def _most(part: Instances) -> int:
    return int(part.key.max(initial=0))
