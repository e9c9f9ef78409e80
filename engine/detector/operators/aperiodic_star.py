"""`A*(a, b, c)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.detector import windows
from engine.detector.instances import Carry, Flow, Instances, Moment, concat, pending_of
from engine.detector.operators.opened import (
    in_closing_order,
    last_before,
    since_first,
    still_open,
)
from engine.detector.operators.shape import greatest


@dataclass(frozen=True, slots=True)
class AperiodicStar:
    """`[[A*(a, b, c)]]` = one instance [s(a), close] for each closed window: the b's in it, and as
    roles that are no parameters a and the c that closes it, of several the lowest in rank (S4).

    Operands: a, b, c; `part` and `closer` are the first roles of b and c. Restricted: of the
    windows that a c closes the one that starts last. Carries per key the a's whose window is open
    and that start no earlier than all that ended after them (likewise before each pending start of
    c), and the b's since the first of these: bound (1 + the pending starts of c) times (1 + those
    of a), and what a window holds. Source: Snoop, `A*`.
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
        chain = windows.previous_greater(
            first.key, first.start, first.offsets, first.row,
            moment.time, moment.rank, keys, True,
        )  # fmt: skip
        low, latest = windows.closed_before(c.key, c.start, keys)
        at, _ = last_before(first, c.key, c.start, keys)
        bounds, index = windows.by_key(inside.key, keys)
        left, right, *entries = windows.fill(
            at, low, chain,
            first.start, first.end, first.offsets, first.row, first.role,
            inside.start, inside.end, inside.offsets, inside.row, inside.role, bounds, index,
            c.key, c.end, c.offsets, c.row, c.role, moment.time, moment.rank,
        )  # fmt: skip
        found = Instances(c.key[right], first.start[left], c.end[right], *entries)
        kept = first.where(still_open(first, chain, latest, closer.pending, keys))
        held = inside.where(since_first(kept, inside, keys))
        return Flow(greatest(found, moment), pending_of([kept], [opener])), (kept, held)
