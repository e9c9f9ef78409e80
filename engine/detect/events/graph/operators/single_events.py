"""`cumulative` of expressions whose instances are single occurrences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.engine.detect.events.occurrences.instances import Carry, Flow, Instances, Moment


@dataclass(frozen=True, slots=True)
class AtOnce:
    """One union for each key and instant: of all instances of the key that end then. Carries
    nothing."""

    slots: int = 0

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        part = operands[0].instances
        entry = part.take(np.lexsort((part.row, moment.rank[part.row], part.key, part.end)))
        first = np.ones(len(entry), dtype=np.bool_)
        first[1:] = (np.diff(entry.end) != 0) | (np.diff(entry.key) != 0)
        begin = np.flatnonzero(first)
        start = np.minimum.reduceat(entry.start, begin) if len(begin) else entry.start
        offsets = np.append(begin, len(entry))
        found = Instances(entry.key[begin], start, entry.end[begin], offsets, entry.row, entry.role)
        return Flow(found, operands[0].pending), carry
