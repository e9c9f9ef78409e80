"""The columnar table of instances that every node of the event graph reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tidegate.engine.core.values import Batch, Int64
from tidegate.engine.detect.events.kernels.columns import Bools as Bools
from tidegate.engine.detect.events.kernels.columns import Columns, Ranks
from tidegate.engine.detect.events.kernels.columns import Int16 as Int16
from tidegate.engine.detect.events.kernels.columns import Int32 as Int32
from tidegate.engine.detect.events.kernels.entries import take_entries

EVERY_KEY = 0
"""The key code of an instance made of broadcasts only: it counts for every key (S7)."""


@dataclass(frozen=True, slots=True)
class Instances:
    """n instances in order of `end`, in the layout of `kernels.columns.Columns`. Keys are key codes
    of the step. Entries are in order of (time, rank, row). Rows number the step's occurrences.
    Roles are numbered from the left of the expression."""

    key: Int32
    start: Int64
    end: Int64
    offsets: Int64
    row: Int64
    role: Int16

    def __len__(self) -> int:
        return len(self.key)

    @property
    def columns(self) -> Columns:
        """The same as kernels read it."""
        return Columns(self.key, self.start, self.end, self.offsets, self.row, self.role)

    def take(self, index: Int64) -> Instances:
        """The instances at `index`, in that order."""
        entries = take_entries(self.columns, index)
        return Instances(self.key[index], self.start[index], self.end[index], *entries)

    def where(self, mask: Bools) -> Instances:
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def shifted(self, roles: int) -> Instances:
        """The same with every role moved up by `roles`, as the parent node numbers them."""
        return replace(self, role=self.role + np.int16(roles)) if roles else self

    def by_end(self) -> Instances:
        """In order of end. Instances with equal ends keep their order."""
        if (self.end[1:] >= self.end[:-1]).all():
            return self
        return self.take(np.argsort(self.end, kind="stable"))


def points(key: Int32, time: Int64, row: Int64) -> Instances:
    """Occurrences as instances of an event type: start = end, one entry in role 0."""
    offsets = np.arange(len(row) + 1, dtype=np.int64)
    return Instances(key, time, time, offsets, row, np.zeros(len(row), dtype=np.int16))


def bare(key: Int32, start: Int64, end: Int64) -> Instances:
    """Intervals without occurrences."""
    offsets = np.zeros(len(key) + 1, dtype=np.int64)
    return Instances(key, start, end, offsets, np.empty(0, np.int64), np.empty(0, np.int16))


def concat(parts: Sequence[Instances]) -> Instances:
    """The instances of all parts, one part after the other. They are not sorted."""
    filled = [part for part in parts if len(part)]
    if len(filled) < 2:
        return filled[0] if filled else NONE
    base = np.cumsum([0, *(len(part.row) for part in filled)])
    offsets = [part.offsets[:-1] + shift for part, shift in zip(filled, base, strict=False)]
    return Instances(
        np.concatenate([part.key for part in filled]),
        np.concatenate([part.start for part in filled]),
        np.concatenate([part.end for part in filled]),
        np.concatenate([*offsets, base[-1:]]),
        np.concatenate([part.row for part in filled]),
        np.concatenate([part.role for part in filled]),
    )


NONE = bare(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class Pending:
    """The pending starts of a node: the instants up to now at which its later instances may start.
    They bound what `;` and `-` must carry (semantics 4).

    key[n] is a key code as in `Instances`, start[n] is in microseconds. They are in any order, and
    may be repeated.

    Example: `x ; y` has seen an x at 10. A y to come makes an instance that starts at 10, so 10 is
    a pending start of it.
    """

    key: Int32
    start: Int64

    def since(self, oldest: int) -> Pending:
        mark = self.start >= oldest
        return Pending(self.key[mark], self.start[mark])


def no_pending() -> Pending:
    return Pending(np.empty(0, np.int32), np.empty(0, np.int64))


@dataclass(frozen=True, slots=True)
class Flow:
    """What a node hands to its parents in one step."""

    instances: Instances
    pending: Pending


def pending_of(stored: Sequence[Instances], operands: Sequence[Flow]) -> Pending:
    """The starts of stored instances and the operands' own pending starts."""
    key = [*(part.key for part in stored), *(flow.pending.key for flow in operands)]
    start = [*(part.start for part in stored), *(flow.pending.start for flow in operands)]
    return Pending(np.concatenate(key), np.concatenate(start))


@dataclass(frozen=True, slots=True)
class Arrivals:
    """n arrivals in order of time, as scans read them. Arrival i is of the event type
    events[code[i]] (past the last: of none), happens at time[i], is of the key code key[i], and has
    the row first + i. What is of no use to the scan may have any key code."""

    events: tuple[str, ...]
    code: Int32
    time: Int64
    key: Int32
    first: int

    @property
    def columns(self) -> tuple[Int32, Int64, Int32, int]:
        """The same as kernels read it."""
        return self.code, self.time, self.key, self.first

    def of(self, event: str) -> Instances:
        """Those of one event type."""
        mine = np.flatnonzero(self.code == [*self.events, event].index(event))
        return points(self.key[mine], self.time[mine], self.first + mine)


class Numbering(Protocol):
    """The numbered occurrences of a step. Ticks are added while the step goes on."""

    @property
    def time(self) -> Int64: ...

    @property
    def start(self) -> Int64: ...

    @property
    def rank(self) -> Int64: ...

    def add_ticks(self, event: str, time: Int64) -> Int64:
        """The rows of ticks of one type. Ticks at one instant are one, carried ones included."""
        ...

    def places(self) -> Int64:
        """For each row the number of its event type."""
        ...

    def shown(self, row: Int64, /) -> tuple[Int16, Int64, dict[str, Batch]]:
        """For each row the number of its event type, its place in that one's batch, and the batches
        by event type."""
        ...


class Counting(Protocol):
    """The count of timers that fire in a step (see `timers`)."""

    limit: int | None

    def fire(self, instants: Int64) -> None: ...


@dataclass(frozen=True, slots=True)
class Moment:
    """What a node's step knows beside instances.

    time[r]     the instant of occurrence r; contexts compare it
    start[r]    the instant at which it starts; operators compare it. It differs from time[r] only
                if the occurrence is a rule's detection
    rank[r]     its order among the simultaneous (S1)
    keys        the largest key code
    known       the codes of the known keys, then the code of the keys not seen yet. Broadcasts are
                repeated for each of these if keys are told apart
    watermark   the step finds the instances that end by then
    last        the last instant at which windows that nothing closes have ticks
    timers      the count of the timers that operators fire
    """

    numbering: Numbering
    keys: int
    known: Int32
    watermark: int
    last: int
    timers: Counting

    @property
    def time(self) -> Int64:
        return self.numbering.time

    @property
    def start(self) -> Int64:
        return self.numbering.start

    @property
    def rank(self) -> Int64:
        return self.numbering.rank

    @property
    def ranks(self) -> Ranks:
        """The order of S1 as kernels read it."""
        return Ranks(self.start, self.rank)


Carry = tuple[Instances, ...]
"""What a node carries from step to step: for each of its slots a table of instances."""
