"""What a walk has found of one rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.engine.detector.instances import Int32
from tidegate.engine.detector.keys import Keys
from tidegate.engine.detector.shown import rearranged
from tidegate.engine.values import Int64


@dataclass(frozen=True, slots=True)
class Found:
    """n detections in order of end: key codes, start, end; the occurrences of detection i are
    row[offsets[i]:offsets[i + 1]] of the log, in order of time."""

    key: Int32
    start: Int64
    end: Int64
    offsets: Int64
    row: Int64

    def in_order(self, keys: Keys) -> Found:
        """In order of end, key, start; of one key no two are alike in both ends."""
        same = self.end[1:] == self.end[:-1]
        if not same.any():
            return self
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        columns = (self.start[tied], keys.ranks(self.key[tied]), self.end[tied])
        order = tied[np.lexsort(columns)]
        if (order == tied).all():
            return self
        key, start = self.key.copy(), self.start.copy()
        key[tied], start[tied] = self.key[order], self.start[order]
        roles = np.zeros(len(self.row), dtype=np.int16)
        offsets, row, _ = rearranged(self.offsets, self.row, roles, tied, order)
        return Found(key, start, self.end, offsets, row)


Walked = tuple[dict[str, list[Found]], Keys]
"""What each rule of a walk detects, part by part in order of end, and the keys."""
