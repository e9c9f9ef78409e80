"""Broadcasts, repeated for each key where keys must be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.occurrences.instances import (
    Carry,
    Flow,
    Instances,
    Int32,
    Moment,
)


@dataclass(frozen=True, slots=True)
class Repeated:
    """Repeats each instance of every key: one instance for each known key, and one for the keys not
    seen yet.

    An instance made of broadcasts counts for every key at once. In `opening - w` per account it
    counts for some accounts only: those without a w. So a rule with such an expression tells its
    keys apart from the start. The last code of `known` stands for the keys not seen yet; a new key
    begins with what holds for these (S7). Carries nothing: bound 0 (the rule keeps its known keys).

    Example: an opening of every key, and the known keys 1 and 2, give three instances: of key 1,
    of key 2, and of code 3, the keys not seen yet.
    """

    slots: int = 0

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        found, known = operands[0].instances, moment.known
        index = np.repeat(np.arange(len(found)), len(known))
        repeated = replace(found.take(index), key=np.tile(known, len(found)))
        return Flow(repeated, operands[0].pending), carry


def endow(carried: Instances, new: Int32, unseen: int) -> Instances:
    """Copies what is carried for the key `unseen` to each key in `new`."""
    general = np.flatnonzero(carried.key == unseen)
    if not len(general) or not len(new):
        return carried
    index: Int64 = np.concatenate([np.arange(len(carried)), np.repeat(general, len(new))])
    key = np.concatenate([carried.key, np.tile(new, len(general))])
    order = np.argsort(carried.end[index], kind="stable")
    return replace(carried.take(index[order]), key=key[order])
