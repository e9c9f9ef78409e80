"""`a - b`, `a without b`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.kernels.columns import LAST, NEVER
from tidegate.engine.detect.events.kernels.joins import without
from tidegate.engine.detect.events.occurrences.instances import (
    Carry,
    Flow,
    Instances,
    Moment,
    Pending,
    bare,
    concat,
)
from tidegate.rules.expressions import nodes as x

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Minus:
    """`[[a - b]]` = { a : no b with s(a) <= s(b), e(b) <= e(a) }.

    An a passes iff it starts after the latest start of b. Carries per key this start, as a bare
    interval, unless all pending starts of a are later. Bound: 1. Source: Carlson & Lisper,
    negation.
    """

    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        part, absent = operands[0].instances, concat([carry[0], operands[1].instances])
        mark, latest = without(part.columns, absent.columns, moment.keys)
        pending = operands[0].pending
        return Flow(part.where(mark), pending), (remembered(latest, pending),)


def remembered(latest: Int64, pending: Pending) -> Instances:
    """The latest start of b of each key, as bare intervals. A key is left out if all its pending
    starts of a are later. latest[key] is `NEVER` if there is no b."""
    earliest = np.full(len(latest), LAST)
    np.minimum.at(earliest, pending.key, pending.start)
    of_one = np.minimum(earliest, earliest[0])
    of_one[0] = earliest.min()
    key = np.flatnonzero((latest > NEVER) & (of_one <= latest)).astype(np.int32)
    return bare(key, latest[key], np.full(len(key), NEVER))


def node(e: x.Minus, build: Builder, horizon: int | None) -> Node:
    found = build.passed(e.part, horizon), build.operand(e.absent, horizon)
    a, b = operands = build.alike(found, horizon)
    # an a of every key may be taken away from some keys: then the rule tells its keys apart
    apart = a.every and b.own
    return build.make(e, Minus(), operands, a.keys, horizon, point=a.point, apart=apart)
