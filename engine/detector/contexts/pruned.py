"""What is looked at only, as long as it matters."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from engine.detector.instances import Instances
from engine.detector.kernels import NEVER

_LAST = np.iinfo(np.int64).max


def pruned(
    looked: Sequence[Instances], kept: Sequence[Instances], windows: Collection[tuple[int, int]]
) -> list[Instances]:
    """The intervals that may still stand inside an instance made of what is kept: they start no
    earlier than all of that. Of `windows`, pairs of streams a and c, the a's that no c has
    closed before that, and the c's that end later."""
    oldest = min((int(part.start.min()) for part in kept if len(part)), default=_LAST)
    found = list(looked)
    paired = {number for pair in windows for number in pair}
    for number in {*range(len(looked))} - paired:
        found[number] = looked[number].where(looked[number].start >= oldest)
    keep = [part.end >= oldest for part in looked]
    for opener, closer in windows:
        a, c = looked[opener], looked[closer]
        latest = np.full(max(_most(a), _most(c)) + 1, NEVER, dtype=np.int64)
        early = c.where(~keep[closer])
        np.maximum.at(latest, early.key, early.start)
        keep[opener] = keep[opener] | (a.end >= np.maximum(latest[a.key], latest[0]))
    for number in paired:
        found[number] = looked[number].where(keep[number])
    return found


def _most(part: Instances) -> int:
    return int(part.key.max(initial=0))
