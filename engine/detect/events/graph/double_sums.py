"""Sums of doubles over windows, from left to right, in nearly linear time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.kernels import binades
from tidegate.engine.detect.events.kernels import double_sums as kernels
from tidegate.engine.detect.events.occurrences.instances import Bools

Doubles = npt.NDArray[np.float64]
FEW = 8
"""So many additions for each row and window take no longer than finding bounds does."""
MANY = 1_000
"""So many take no longer than adding rows of a binade together does."""


class DoubleSums:
    """The sums of windows low:high over `values`, 0.0 for null. sums[i] differs from
    the sum from left to right by off[i] at most; 0 where it is that one. So it is for all windows
    (`exact`) where the values are whole or the windows short. Else what is near to a number that it
    is compared with is summed anew.
    """

    def __init__(self, values: Doubles, low: Int64, high: Int64) -> None:
        self._values = values
        self._low, self._high = low, high
        self.sums: Doubles
        self.off = np.broadcast_to(np.float64(0), len(low))
        before = kernels.whole_sums(values)
        self.exact = len(before) > 0 or (high - low).sum() <= FEW * (len(values) + len(low))
        if len(before):
            self.sums = kernels.differences(before, low, high)
        elif self.exact:
            self.sums = kernels.from_left(values, low, high)
        else:
            self.sums, self.off = kernels.nearly(values, low, high)

    @property
    def near(self) -> Bools:
        """Which may differ from the sum from left to right."""
        return np.asarray(self.off > 0)

    def sum_anew(self, which: Bools) -> None:
        """Sums these windows from left to right."""
        at = np.flatnonzero(which & self.near)
        low, high = self._low[at], self._high[at]
        many = (high - low).sum() > MANY * (len(self._values) + len(at))
        sums_of = binades.long_sums if many else kernels.from_left
        self.sums[at] = sums_of(self._values, low, high)
        self.off[at] = 0
