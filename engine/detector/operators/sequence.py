"""`a ; b`."""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.detector.graph import Node
from tidegate.engine.detector.instances import (
    Carry,
    Flow,
    Instances,
    Int32,
    Moment,
    concat,
    pending_of,
)
from tidegate.engine.detector.kernels import as_of, join_entries
from tidegate.engine.detector.operators.shape import greatest
from tidegate.engine.values import Int64
from tidegate.rules import expression as x

if TYPE_CHECKING:
    from tidegate.engine.detector.compile import Build


ENDLESS = 2**62


@dataclass(frozen=True, slots=True)
class Sequence:
    """`[[a ; b]]` = { a u b : e(a) < s(b) }.

    `role` is the first role of b; `point`: b's instances have start = end; `mixed`: b has both
    instances of one key and of every key; a longer instance than `span_micros` is of no use. An
    as-of lookup: for each b the greatest a that ended before s(b). Carries per key the greatest a,
    and for each pending start of b the greatest a before it: bound 1 + the pending starts of b.
    Source: Carlson & Lisper, sequence; the bound is that of Carlson's thesis (bounded sequence
    without a `within`).
    """

    role: int
    point: bool
    mixed: bool
    span_micros: int | None = None
    slots: int = 1

    def step(self, operands: Many[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        first = concat([carry[0], operands[0].instances])
        then = operands[1].instances
        span = ENDLESS if self.span_micros is None else self.span_micros
        if self.point:
            left, right, key, best = _as_of(first, then.key, then.start, moment, then.end, span)
        else:
            order = np.argsort(then.start, kind="stable")
            queries = then.key[order], then.start[order]
            left, right, key, best = _as_of(first, *queries, moment, then.end[order], span)
            right = order[right]
            order = np.argsort(right, kind="stable")
            left, right, key = left[order], right[order], key[order]
        entries = join_entries(
            first.offsets, first.row, first.role,
            then.offsets, then.row, then.role, self.role, left, right,
        )  # fmt: skip
        found = Instances(key, first.start[left], then.end[right], *entries)
        if self.mixed:
            found = greatest(found, moment)
        held = np.zeros(len(first), dtype=np.bool_)
        held[best[best >= 0]] = True
        pending = operands[1].pending
        if len(pending.key):
            order = np.argsort(pending.start, kind="stable")
            held[_as_of(first, pending.key[order], pending.start[order], moment)[0]] = True
        kept = first.where(held)
        return Flow(found, pending_of([kept], operands[:1])), (kept,)


def _as_of(
    first: Instances,
    key: Int32,
    time: Int64,
    moment: Moment,
    end: Int64 | None = None,
    span: int = ENDLESS,
) -> tuple[Int64, Int64, Int32, Int32]:
    """For each query (by time) the greatest of `first` that ended before: `kernels.as_of`."""
    found: tuple[Int64, Int64, Int32, Int32] = as_of(
        first.key, first.start, first.end, first.offsets, first.row,
        moment.start, moment.rank, key, time, time if end is None else end, span, moment.keys,
    )  # fmt: skip
    return found


def node(e: x.Seq, build: Build, horizon: int | None) -> Node:
    a, b = operands = build.operands((e.first, e.then), horizon)
    shape = Sequence(len(a.roles), b.point, mixed=b.own and b.every, span_micros=horizon)
    return build.make(e, shape, operands, (a.own or b.own, a.every and b.every), horizon)
