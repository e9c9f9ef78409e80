"""`a ; b`."""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.graph.shape import greatest
from tidegate.engine.detect.events.kernels.columns import ENDLESS
from tidegate.engine.detect.events.kernels.entries import join_entries
from tidegate.engine.detect.events.kernels.joins import Queries, as_of
from tidegate.engine.detect.events.occurrences.instances import (
    Carry,
    Flow,
    Instances,
    Moment,
    concat,
    pending_of,
)
from tidegate.rules.expressions import nodes as x

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Sequence:
    """`[[a ; b]]` = { a u b : e(a) < s(b) }.

    An as-of join: for each b the greatest a that ended before s(b). `role` is the first role of b.
    `point`: b's instances have start = end. `mixed`: b has instances of one key, and instances of
    every key. Instances longer than `span_micros` are left out. Carries per key the greatest a, and
    for each pending start of b the greatest a before it. Bound: 1 + the pending starts of b.
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
        then, keys = operands[1].instances, moment.keys
        queries = Queries(then.key, then.start, then.end)
        if not self.point:
            order = np.argsort(then.start, kind="stable")
            queries = Queries(then.key[order], then.start[order], then.end[order])
        span = ENDLESS if self.span_micros is None else self.span_micros
        (left, right, key), best = as_of(first.columns, moment.ranks, queries, span, keys)
        if not self.point:
            right = order[right]
            by_end = np.argsort(right, kind="stable")
            left, right, key = left[by_end], right[by_end], key[by_end]
        entries = join_entries(first.columns, then.columns, self.role, left, right)
        found = Instances(key, first.start[left], then.end[right], *entries)
        if self.mixed:
            found = greatest(found, moment)
        held = np.zeros(len(first), dtype=np.bool_)
        held[best[best >= 0]] = True
        pending = operands[1].pending
        if len(pending.key):
            order = np.argsort(pending.start, kind="stable")
            start = pending.start[order]
            queries = Queries(pending.key[order], start, start)
            pairs, _ = as_of(first.columns, moment.ranks, queries, ENDLESS, keys)
            held[pairs.left] = True
        kept = first.where(held)
        return Flow(found, pending_of([kept], operands[:1])), (kept,)


def node(e: x.Seq, build: Builder, horizon: int | None) -> Node:
    a, b = operands = build.operands((e.first, e.then), horizon)
    shape = Sequence(len(a.roles), b.point, mixed=b.own and b.every, span_micros=horizon)
    return build.make(e, shape, operands, (a.own or b.own, a.every and b.every), horizon)
