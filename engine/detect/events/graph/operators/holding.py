"""`{holds: x, until: y, for: d, keep: e}`, and `resolved` of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.flat.arrivals import by_rank
from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.graph.rows import rows_of
from tidegate.engine.detect.events.graph.search_limits import check_held
from tidegate.engine.detect.events.kernels.columns import NEVER
from tidegate.engine.detect.events.kernels.holding import turns_of
from tidegate.engine.detect.events.occurrences.instances import (
    Bools,
    Carry,
    Flow,
    Instances,
    Moment,
    Pending,
    bare,
    no_pending,
)
from tidegate.rules.expressions import windows as w

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Holding:
    """Both what fires and what is resolved, of one state: `Turn` picks one of the two.

    Operands: x, y, every row of them. `role` is the first role of y. Fires: [t0, t0 + d] with the
    x's since. Resolved: [u, u + e] with the y's at u. Carries per key one instance at most in each
    slot:

        waiting  what fires, or is resolved, at its end if nothing comes in between
        fired    the instant at which it fired, as long as that is not resolved

    Bound: the x's of the last d or the y's of one instant; and an instant for ever. Source:
    Prometheus, `for` and `keep_firing_for` of alerting rules.

    Example: x at 1 and 4, d = 10. Up to 5 it carries waiting [1, 11] {1, 4}; up to 11 fired [11].
    """

    length_micros: int
    keep_micros: int
    role: int
    carried_per_key_max: int = field(repr=False)
    slots: int = 2

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        begun, ended = (flow.instances for flow in operands)
        waiting, fired = carry
        begins = self._begins(waiting)
        first = rows_of(waiting.where(begins), begun, moment)
        second = rows_of(waiting.where(~begins), ended.shifted(self.role), moment)
        since = np.full(moment.keys + 1, NEVER)
        since[fired.key] = fired.end
        turns, since = turns_of(
            np.concatenate([first.key, second.key]),
            np.concatenate([first.time, second.time]),
            len(first.key),
            since,
            (self.length_micros, self.keep_micros),
            moment.watermark,
        )
        row = np.concatenate([first.row, second.row])[turns.place]
        role = np.concatenate([first.role, second.role])[turns.place]
        every = Instances(turns.key, turns.start, turns.end, turns.offsets, row, role)
        found, kept = every.where(turns.done).by_end(), every.where(~turns.done).by_end()
        moment.timers.fire(found.end if self.keep_micros else found.end[self._begins(found)])
        check_held(kept, self.carried_per_key_max)
        left = np.flatnonzero(since != NEVER).astype(np.int32)
        held = bare(left, since[left], since[left]).by_end()
        return Flow(by_rank(found, moment), Pending(kept.key, kept.start)), (kept, held)

    def due(self, carry: Carry, /) -> Int64:
        return carry[0].end

    def _begins(self, found: Instances) -> Bools:
        """Which of some instances are of x's, and not of y's."""
        return np.asarray(found.role[found.offsets[:-1]] < self.role)


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
    most = build.settings.carried_per_key_max
    shape = Holding(e.length.micros, e.keep.micros, role, most)
    both = build.make(e, shape, (begun, ended), begun.keys, None, timed=True)
    return build.make(e, Turn(role, resolved), (both,), both.keys, None, point=resolved)
