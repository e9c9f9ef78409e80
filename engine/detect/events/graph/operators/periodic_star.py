"""`P*(a, [d], c)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.core.event_names import tick_type
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.calendar import add_each, multiples
from tidegate.engine.detect.events.graph.graph import Node, first_roles, mixed
from tidegate.engine.detect.events.graph.operators.closed_windows import closed, due, filled
from tidegate.engine.detect.events.graph.operators.open_windows import (
    greatest_open,
    in_closing_order,
)
from tidegate.engine.detect.events.graph.shape import greatest
from tidegate.engine.detect.events.kernels.contents import Closed
from tidegate.engine.detect.events.occurrences.instances import (
    Carry,
    Flow,
    Moment,
    bare,
    concat,
    pending_of,
    points,
)
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.nodes import Duration

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class PeriodicStar:
    """`[[P*(a, [d], c)]]` = one instance [s(a), close] for each closed window of a: its ticks
    e(a) + k * d, k >= 1, up to the close. a and c are roles, and no parameters. A window closes as
    that of `A*`, or `own` after e(a).

    Operands: a, and c unless there is an `own` terminator. `closer` is the first role of c, `role`
    that of the ticks, `ticks` their type. Months count in `zone` (S11). Carries per key the
    greatest a whose window is open; for each pending start of c the greatest a whose window this c
    would leave open; and the same as of each pending start of c. Bound: (1 + the pending starts of
    c) squared. With an `own` terminator it carries every a whose window is open. Source: Snoop,
    `P*`.
    """

    period: Duration
    own: Duration | None
    zone: str
    closer: int
    role: int
    ticks: str
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        opener = operands[0]
        first = concat([carry[0], opener.instances])
        if self.own is None:
            c = in_closing_order(operands[1].instances, moment).shifted(self.closer)
            _, left, chain, latest = closed(first, c, moment, ties=False)
            right = (left >= 0).nonzero()[0]
            left = left[right]
            pending = operands[1].pending
            kept = first.where(greatest_open(first, chain, latest, pending, pending, moment.keys))
        else:
            close = add_each(first.end, self.own, self.zone)
            left = due(close, moment)
            c, right = bare(first.key[left], close[left], close[left]), np.arange(len(left))
            kept = first.where(np.asarray(close > moment.watermark))
        opened = first.end[left]
        counts, ticks = multiples(opened, opened, c.end[right], self.period, self.zone)
        rows = moment.numbering.add_ticks(self.ticks, ticks)
        inside = points(np.repeat(c.key[right], counts), ticks, rows).shifted(self.role)
        last = np.cumsum(counts) - 1
        before = np.arange(-1, len(ticks) - 1)
        before[(last - counts + 1)[counts > 0]] = -1
        last[counts == 0] = -1
        windows = Closed(first.columns, inside.columns, c.columns, before, left, right, last)
        found = filled(windows, moment)
        return Flow(greatest(found, moment), pending_of([kept], [opener])), (kept,)

    def due(self, carry: Carry, /) -> Int64:
        if self.own is None:
            return np.empty(0, np.int64)
        return add_each(carry[0].end, self.own, self.zone)


def node(e: x.PeriodicStar, build: Builder, horizon: int | None) -> Node:
    own = e.closer.duration if isinstance(e.closer, x.Own) else None
    closers = () if own else (build.closer(e, horizon),)
    operands = build.alike((build.operand(e.opener, horizon), *closers), horizon)
    a, closer, ticks = operands[0], first_roles(operands)[-1], tick_type(e)
    role, zone = sum(len(o.roles) for o in operands), build.zone_of(e.period, own)
    shape = PeriodicStar(e.period, own, zone, closer, role, ticks)
    apart = mixed(operands)
    return build.make(e, shape, operands, a.keys, horizon, timed=True, apart=apart, ticks=ticks)
