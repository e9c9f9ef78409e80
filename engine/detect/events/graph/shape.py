"""What every operator of the event graph is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.kernels.instance_order import greatest_per_end
from tidegate.engine.detect.events.kernels.unions import unite, unite_points
from tidegate.engine.detect.events.occurrences.instances import (
    Arrivals,
    Carry,
    Flow,
    Instances,
    Int32,
    Moment,
)


class Shape(Protocol):
    """A frozen value: its fields are what the rule wrote, and name the node."""

    @property
    def slots(self) -> int:
        """How many slots its carry has."""
        ...

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        """The instances that end in this step, from the operands' and from what was carried:
        for each (key, end) at most one, the greatest; and what to carry on. Pure."""
        ...


class Scan(ABC):
    """A choice that is made in one scan over all rows of the event types that are the operands. A
    frozen value as `Shape` is."""

    slots: int

    @abstractmethod
    def scan(self, arrivals: Arrivals, carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        """What `Shape.step` gives, from what arrives of the operands."""


def greatest(found: Instances, moment: Moment) -> Instances:
    """For each (key, end) the greatest of the instances found, which are in order of end."""
    kept = greatest_per_end(found.columns, moment.ranks, moment.keys)
    return found if len(kept) == len(found) else found.take(kept)


def united(key: Int32, end: Int64, members: Int32, pool: Instances, moment: Moment) -> Instances:
    """The unions of the instances members[n, m] of `pool`."""
    if (np.diff(pool.offsets) == 1).all():
        start, row, role = unite_points(members, pool.columns, moment.ranks)
        return Instances(key, start, end, np.arange(len(key) + 1) * members.shape[1], row, role)
    start, entries = unite(members, pool.columns, moment.ranks)
    return Instances(key, start, end, *entries)


def in_rank(found: Instances, moment: Moment) -> Instances:
    """Simultaneous occurrences in order of rank: as `every` and `[i]` count them."""
    if (found.end[1:] > found.end[:-1]).all() or len(found.row) != len(found):
        return found  # a composite has one instance of a key at an instant
    return found.take(np.lexsort((moment.rank[found.row], found.end)))
