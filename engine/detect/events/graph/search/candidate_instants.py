"""The instants at which something may be detected, whatever is consumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.engine.detect.events.graph.calendar import add_each
from tidegate.engine.detect.events.graph.search.streams import After
from tidegate.engine.detect.events.occurrences.instances import (
    EVERY_KEY,
    Instances,
    Int32,
    Moment,
    bare,
    concat,
)


@dataclass(frozen=True, slots=True)
class Where:
    """`paths`: so long after the end of what a stream has (its start if `from_start`), the
    terminators added one after the other."""

    paths: tuple[tuple[int, tuple[After, ...]], ...] = ()
    from_start: bool = False


def instants(
    where: Where, arrived: Sequence[Instances], waiting: Instances, keys: Int32, moment: Moment
) -> tuple[Instances, Instances]:
    """The instants up to the watermark, and those to come. `waiting` are those to come so far;
    `keys` all there are: what is of every key is looked at for each of them."""
    parts = [waiting]
    for number, path in where.paths:
        part = arrived[number]
        time = part.start if where.from_start else part.end
        for after in path:
            time = add_each(time, after.duration, after.zone)
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
