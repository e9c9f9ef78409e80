"""`A(a, b, [d])` and `A*(a, b, [d])`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.calendar import add_each
from tidegate.engine.detect.events.graph.graph import Node, mixed
from tidegate.engine.detect.events.graph.operators.closed_windows import due, filled
from tidegate.engine.detect.events.graph.operators.open_windows import (
    last_before,
    since_first,
    still_open,
)
from tidegate.engine.detect.events.graph.shape import greatest
from tidegate.engine.detect.events.kernels.columns import NEVER
from tidegate.engine.detect.events.kernels.contents import Closed
from tidegate.engine.detect.events.kernels.joins import linked
from tidegate.engine.detect.events.occurrences.instances import (
    Carry,
    Flow,
    Instances,
    Moment,
    bare,
    concat,
    pending_of,
)
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.nodes import Duration

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class AperiodicUntil:
    """`[[A(a, b, [d])]]` = { b : e(a) <= s(b), e(b) <= e(a) + d for some a }.

    Operands: a, b. `role` is the first role of b. Of the a's with e(a) <= s(b) the one whose window
    closes last decides: the last a, but where months or business days are counted an earlier one
    may close later (S11). Carries per key, as [e(a) of that one, e(a) of the last], the last a, and
    the last one at each pending start of b. Bound: 1 + the pending starts of b. Source: Snoop, `A`.
    """

    duration: Duration
    zone: str
    role: int
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        opener, part = (flow.instances for flow in operands)
        first = concat([carry[0], bare(opener.key, opener.end, opener.end)])
        close = add_each(first.start, self.duration, self.zone)
        if not self.duration.fixed:
            decides = _closing_last(first, close)
            first, close = replace(first, start=first.start[decides]), close[decides]
        at, _ = last_before(first, part.key, part.start + 1, moment.keys)
        mark = (at >= 0) & (np.append(close, NEVER)[at] >= part.end)
        none = np.full(len(first), -1, dtype=np.int64)
        low = np.full(moment.keys + 1, NEVER)
        pending = operands[1].pending
        kept = still_open(first, none, low, pending, moment.keys, same=True)
        kept &= close > moment.watermark
        return Flow(part.where(mark).shifted(self.role), pending), (first.where(kept),)


@dataclass(frozen=True, slots=True)
class AperiodicStarUntil:
    """`[[A*(a, b, [d])]]` = one instance [s(a), e(a) + d] for each a: the b's with e(a) <= s(b),
    e(b) <= e(a) + d, and a as a role that is no parameter.

    Operands: a, b. `role` is the first role of b. Carries every a whose window is open, and the b's
    since the first of these. Bound: the a's and b's within d. Source: Snoop, `A*`.
    """

    duration: Duration
    zone: str
    role: int
    slots: int = 2

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        opener, part = operands
        first = concat([carry[0], opener.instances])
        inside = concat([carry[1], part.instances.shifted(self.role)])
        close = add_each(first.end, self.duration, self.zone)
        left = due(close, moment)
        c = bare(first.key[left], close[left], close[left])
        last, before = linked(inside.key, inside.end, c.key, c.end, moment.keys)
        windows = Closed(
            first.columns, inside.columns, c.columns, before, left, np.arange(len(c)), last
        )
        found = filled(windows, moment)
        kept = first.where(np.asarray(close > moment.watermark))
        held = inside.where(since_first(kept, inside, moment.keys))
        return Flow(greatest(found, moment), pending_of([kept], [opener])), (kept, held)

    def due(self, carry: Carry, /) -> Int64:
        return add_each(carry[0].end, self.duration, self.zone)


def _closing_last(first: Instances, close: Int64) -> Int64:
    """For each opener the one that closes last, of it and those of its key before it."""
    number = len(first)
    by_close = np.argsort(close, kind="stable")
    rank = np.empty(number, dtype=np.int64)
    rank[by_close] = np.arange(number)
    order = np.argsort(first.key, kind="stable")
    greatest_yet = np.maximum.accumulate(first.key[order].astype(np.int64) * number + rank[order])
    found = np.empty(number, dtype=np.int64)
    found[order] = by_close[greatest_yet % number] if number else by_close
    return found


def node(e: x.Aperiodic, own: Duration, build: Builder, horizon: int | None) -> Node:
    found = build.operand(e.opener, None), build.passed(e.part, horizon)
    a, b = operands = build.alike(found, horizon)
    shape, apart = AperiodicUntil(own, build.zone_of(own), len(a.roles)), mixed(operands)
    return build.make(e, shape, operands, b.keys, None, point=b.point, apart=apart)


def star(e: x.AperiodicStar, own: Duration, build: Builder, horizon: int | None) -> Node:
    found = build.operand(e.opener, horizon), build.each(e.part, horizon)
    a, _ = operands = build.alike(found, horizon)
    shape, apart = AperiodicStarUntil(own, build.zone_of(own), len(a.roles)), mixed(operands)
    return build.make(e, shape, operands, a.keys, horizon, timed=True, apart=apart)
