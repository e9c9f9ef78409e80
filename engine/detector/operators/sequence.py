"""`a ; b`."""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass

import numpy as np

from engine.detector.instances import (
    Carry,
    Flow,
    Instances,
    Int32,
    Moment,
    Pending,
    concat,
    pending_of,
)
from engine.detector.kernels import as_of, join_entries
from engine.detector.operators.shape import greatest
from engine.values import Int64


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
        if self.point:
            left, right, key, best = _as_of(first, Pending(then.key, then.start), moment)
        else:
            order = np.argsort(then.start, kind="stable")
            queries = Pending(then.key[order], then.start[order])
            left, right, key, best = _as_of(first, queries, moment)
            right = order[right]
            order = np.argsort(right, kind="stable")
            left, right, key = left[order], right[order], key[order]
        if self.span_micros is not None:
            useful = then.end[right] - first.start[left] <= self.span_micros
            left, right, key = left[useful], right[useful], key[useful]
        entries = join_entries(
            first.offsets, first.row, first.role,
            then.offsets, then.row, then.role + np.int16(self.role),
            left, right,
        )  # fmt: skip
        found = Instances(key, first.start[left], then.end[right], *entries)
        if self.mixed:
            found = greatest(found, moment)
        held, pending = best[best >= 0], operands[1].pending
        if len(pending.key):
            order = np.argsort(pending.start, kind="stable")
            starts = Pending(pending.key[order], pending.start[order])
            held = np.concatenate([held, _as_of(first, starts, moment)[0]])
        kept = first.take(np.unique(held))
        return Flow(found, pending_of([kept], operands[:1])), (kept,)


def _as_of(first: Instances, queries: Pending, moment: Moment) -> tuple[Int64, Int64, Int32, Int64]:
    """For each query (by start) the greatest of `first` that ended before: `kernels.as_of`."""
    found: tuple[Int64, Int64, Int32, Int64] = as_of(
        first.key, first.start, first.end, first.offsets, first.row,
        moment.time, moment.rank, queries.key, queries.start, moment.keys,
    )  # fmt: skip
    return found
