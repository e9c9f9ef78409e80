"""`{holds: x, until: y, for: d, keep: e}`, and `resolved` of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.flat.arrivals import by_rank
from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.kernels.columns import NEVER
from tidegate.engine.detect.events.kernels.holding import turns_of
from tidegate.engine.detect.events.occurrences.instances import (
    Bools,
    Carry,
    Flow,
    Instances,
    Moment,
    bare,
    concat,
    no_pending,
    pending_of,
    points,
)
from tidegate.rules.expressions import windows as w

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Holding:
    """Both what fires and what is resolved, of one state: `Turn` picks one of the two.

    Operands: x, y. `role` is the first role of y. Fires: [t0, t0 + d] with the x's since. Resolved:
    [u, u + e] with the y's at u. Carries per key, in order of end:

        timed    the x at t0 of what is pending, or the y at u that may resolve it
        beside   the other x's since t0, and the other y's at u
        fired    when it fired, without occurrences, as long as that is not resolved

    Bound: the x's of the last d, and the y's of one instant; and one instant for ever. Source:
    Prometheus, `for` and `keep_firing_for` of alerting rules.

    Example: x at 1 and 4, d = 10, up to 5: timed x@1, beside x@4. Up to 11: fired [11, 11].
    """

    length_micros: int
    keep_micros: int
    role: int
    slots: int = 3

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        begun, ended = (flow.instances for flow in operands)
        timed, beside, fired = carry
        first, second = (
            concat([part.where(which(part)) for part in (timed, beside)]).by_end()
            for which in (self._begins, self._ends)
        )
        table = concat([first, begun, second, ended.shifted(self.role)])
        since = np.full(moment.keys + 1, NEVER)
        since[fired.key] = fired.end
        turns, since = turns_of(
            table.columns,
            len(first) + len(begun),
            since,
            (self.length_micros, self.keep_micros),
            moment.watermark,
        )
        every = Instances(
            turns.key, turns.start, turns.end, turns.offsets,
            table.row[turns.place], table.role[turns.place],
        )  # fmt: skip
        found = every.where(turns.done).by_end()
        moment.timers.fire(found.end if self.keep_micros else found.end[self._begins(found)])
        kept = _waiting(every.where(~turns.done), moment)
        left = np.flatnonzero(since != NEVER).astype(np.int32)
        kept = (*kept, bare(left, since[left], since[left]).by_end())
        return Flow(by_rank(found, moment), pending_of(kept[:1], operands)), kept

    def due(self, carry: Carry, /) -> Int64:
        """When what waits is decided."""
        length = np.where(self._begins(carry[0]), self.length_micros, self.keep_micros)
        return np.asarray(carry[0].end + length)

    def _begins(self, found: Instances) -> Bools:
        """Which of some instances are of x's, and not of y's."""
        return np.asarray(found.role[found.offsets[:-1]] < self.role)

    def _ends(self, found: Instances) -> Bools:
        return ~self._begins(found)


def _waiting(waiting: Instances, moment: Moment) -> Carry:
    """What waits as single occurrences: the first of each instance, and the others."""
    key = np.repeat(waiting.key, np.diff(waiting.offsets))
    single = replace(points(key, moment.time[waiting.row], waiting.row), role=waiting.role)
    first = np.zeros(len(single), dtype=np.bool_)
    first[waiting.offsets[:-1]] = True
    return single.where(first).by_end(), single.where(~first).by_end()


@dataclass(frozen=True, slots=True)
class Turn:
    """Of what a `Holding` detects that which fires, or, each as a point, that which is resolved.

    `role` is the first role of y. Carries nothing: bound 0.
    """

    role: int
    resolved: bool
    slots: int = 0

    def step(self, operands: Sequence[Flow], carry: Carry, _: Moment, /) -> tuple[Flow, Carry]:
        found = operands[0].instances
        found = found.where((found.role[found.offsets[:-1]] >= self.role) == self.resolved)
        if self.resolved:
            return Flow(replace(found, start=found.end), no_pending()), carry
        return Flow(found, operands[0].pending), carry


def node(e: w.Holding, build: Builder, _: int | None) -> Node:
    return _turn(e, build, resolved=False)


def resolution(e: w.Resolution, build: Builder, _: int | None) -> Node:
    return _turn(e, build, resolved=True)


def _turn(e: w.Holding, build: Builder, *, resolved: bool) -> Node:
    begun, ended = build.rows(e.begun, None), build.rows(e.ended, None)
    role = len(begun.roles)
    shape = Holding(e.length.micros, e.keep.micros, role)
    both = build.make(e, shape, (begun, ended), begun.keys, None, timed=True)
    return build.make(e, Turn(role, resolved), (both,), both.keys, None, point=resolved)
