"""The instants at which something may be detected, whatever is consumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.engine.detect.events.graph.calendar import add_each
from tidegate.engine.detect.events.occurrences.instances import (
    EVERY_KEY,
    Instances,
    Int32,
    Moment,
    bare,
    concat,
)
from tidegate.rules.expressions.nodes import Duration


@dataclass(frozen=True, slots=True)
class Where:
    """The instants at which to look. Each path is a stream and some durations: they are added, one
    after the other, to the end of each instance of the stream (`from_start`: to its start)."""

    paths: tuple[tuple[int, tuple[Duration, ...]], ...] = ()
    from_start: bool = False


def instants(
    where: Where,
    zone: str,
    arrived: Sequence[Instances],
    waiting: Instances,
    keys: Int32,
    moment: Moment,
) -> tuple[Instances, Instances]:
    """The instants up to the watermark, and the later ones. `waiting` are the later ones of the
    step before. `keys` are all keys; an instant of every key counts for each of them."""
    parts = [waiting]
    for number, path in where.paths:
        part = arrived[number]
        time = part.start if where.from_start else part.end
        for duration in path:
            time = add_each(time, duration, zone)
        parts.append(bare(part.key, time, time))
    found = concat(parts)
    later = np.flatnonzero(found.end > moment.watermark)
    pairs = np.unique(np.stack([found.end[later], found.key[later]]), axis=1)
    waiting = bare(pairs[1].astype(np.int32), pairs[0], pairs[0])
    due = found.where(found.end <= moment.watermark)
    own = keys[keys != EVERY_KEY]
    general = due.where(due.key == EVERY_KEY)
    if not len(own) or not len(general):
        return due, waiting
    spread = np.tile(general.end, len(own))
    each = bare(np.repeat(own, len(general)).astype(np.int32), spread, spread)
    return concat([due.where(due.key != EVERY_KEY), each]), waiting
