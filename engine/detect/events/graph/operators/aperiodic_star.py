"""`A*(a, b, c)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.engine.detect.events.graph.graph import Node, first_roles, mixed
from tidegate.engine.detect.events.graph.operators.closed_windows import closed, filled
from tidegate.engine.detect.events.graph.operators.open_windows import (
    in_closing_order,
    since_first,
    still_open,
)
from tidegate.engine.detect.events.graph.shape import greatest
from tidegate.engine.detect.events.kernels.contents import Closed, settle
from tidegate.engine.detect.events.kernels.joins import linked
from tidegate.engine.detect.events.occurrences.instances import (
    Carry,
    Flow,
    Moment,
    concat,
    pending_of,
)
from tidegate.rules.expressions import nodes as x

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class AperiodicStar:
    """`[[A*(a, b, c)]]` = one instance [s(a), close] for each closed window: the b's in it. The a
    and the c of the window are roles, and no parameters. If several c's end at the close, the
    lowest in rank is the one (S4).

    Operands: a, b, c. `part` and `closer` are the first roles of b and c. Restricted: a c detects
    the window that starts last of those that it closes. Carries per key:

        a's   those whose window is open, unless a later one starts after them; and the same as of
              each pending start of c
        b's   those since the end of the first of these a's

    Bound: (1 + the pending starts of c) * (1 + those of a) a's, and what their windows hold.
    Source: Snoop, `A*`.

    Example: a@1 a@4 b@5, and no c yet. It carries a@4 and b@5. It drops a@1: the window of a@4
    starts later, and every c that closes the one closes the other.
    """

    part: int
    closer: int
    slots: int = 2

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        opener, part, closer = operands
        keys = moment.keys
        first = concat([carry[0], opener.instances])
        inside = concat([carry[1], part.instances.shifted(self.part)])
        c = in_closing_order(closer.instances, moment).shifted(self.closer)
        at, left, chain, latest = closed(first, c, moment, ties=True)
        last, before = linked(inside.key, inside.end, c.key, c.end, keys)
        right = (left >= 0).nonzero()[0]
        windows = Closed(
            first.columns, inside.columns, c.columns, before, left[right], right, last[right]
        )
        settle(windows, at[right], chain, moment.ranks)
        found = filled(windows, moment)
        kept = first.where(still_open(first, chain, latest, closer.pending, keys))
        held = inside.where(since_first(kept, inside, keys))
        return Flow(greatest(found, moment), pending_of([kept], [opener])), (kept, held)


def node(e: x.AperiodicStar, build: Builder, horizon: int | None) -> Node:
    found = build.operand(e.opener, horizon), build.each(e.part, horizon)
    operands = build.alike((*found, build.closer(e, horizon)), horizon)
    _, part, closer = first_roles(operands)
    shape, a, apart = AperiodicStar(part, closer), operands[0], mixed(operands)
    return build.make(e, shape, operands, a.keys, horizon, apart=apart)
