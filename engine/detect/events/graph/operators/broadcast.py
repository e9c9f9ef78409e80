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
    """An instance of every key, as one instance of each known key and of the key not seen yet.

    An instance made of broadcasts counts for every key at once, until `-` takes it away from some:
    `opening - w` per account. A rule with such an expression keeps its keys apart from the start:
    what holds for a key not seen yet (the last of `known`) is what a new key begins with (S7).
    Carries nothing: bound 0 (the rule keeps its known keys).
    """

    slots: int = 0

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        found, known = operands[0].instances, moment.known
        index = np.repeat(np.arange(len(found)), len(known))
        repeated = replace(found.take(index), key=np.tile(known, len(found)))
        return Flow(repeated, operands[0].pending), carry


def endow(carried: Instances, new: Int32, unseen: int) -> Instances:
    """Give the keys in `new` what is carried for the key `unseen` so far."""
    general = np.flatnonzero(carried.key == unseen)
    if not len(general) or not len(new):
        return carried
    index: Int64 = np.concatenate([np.arange(len(carried)), np.repeat(general, len(new))])
    key = np.concatenate([carried.key, np.tile(new, len(general))])
    order = np.argsort(carried.end[index], kind="stable")
    return replace(carried.take(index[order]), key=key[order])
