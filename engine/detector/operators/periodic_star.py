"""`P*(a, [d], c)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.detector import windows
from engine.detector.calendar import add_each, multiples
from engine.detector.instances import NONE, Carry, Flow, Instances, Moment, concat, pending_of
from engine.detector.operators.opened import greatest_open, in_closing_order, last_before
from engine.detector.operators.shape import greatest
from rules.expression import Duration


@dataclass(frozen=True, slots=True)
class PeriodicStar:
    """`[[P*(a, [d], c)]]` = one instance [s(a), close] for each closed window of a: its ticks
    e(a) + k * d, k >= 1, up to the close, and as roles that are no parameters a and c. A window
    closes as that of `A*`, or `own` after e(a).

    Operands: a, and c unless there is an `own` terminator; `closer` is the first role of c, `role`
    that of the ticks, `ticks` their type; months count in `zone` (S11). Carries per key the
    greatest a whose window is open, and the greatest that a c with a pending start would leave
    open; the same before each pending start of c: bound (1 + the pending starts of c) squared; with
    an `own` terminator every a whose window is open. Source: Snoop, `P*`.
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
            found, left, kept = self._closed(first, operands[1], moment)
        else:
            close = add_each(first.end, self.own, self.zone)
            due = close <= moment.watermark
            left = np.flatnonzero(due)
            whole = first.take(left)
            found = Instances(
                whole.key, whole.start, close[left], whole.offsets, whole.row, whole.role
            )
            kept = first.where(np.logical_not(due))
        opened = first.end[left]
        counts, ticks = multiples(opened, opened, found.end, self.period, self.zone)
        rows = moment.numbering.add_ticks(self.ticks, ticks)
        entries = windows.with_ticks(
            found.offsets, found.row, found.role, counts, rows, np.int16(self.role),
            moment.time, moment.rank,
        )  # fmt: skip
        found = greatest(Instances(found.key, found.start, found.end, *entries), moment)
        return Flow(found, pending_of([kept], [opener])), (kept,)

    def _closed(
        self, first: Instances, closer: Flow, moment: Moment
    ) -> tuple[Instances, np.ndarray[tuple[int], np.dtype[np.int64]], Instances]:
        """The greatest of the windows that each c closes, their openers, and those still open."""
        keys = moment.keys
        c = in_closing_order(closer.instances, moment).shifted(self.closer)
        chain = windows.previous_greater(
            first.key, first.start, first.offsets, first.row, moment.time, moment.rank, keys, False
        )
        low, latest = windows.closed_before(c.key, c.start, keys)
        at, _ = last_before(first, c.key, c.start, keys)
        bounds, index = windows.by_key(NONE.key, keys)
        left, right, *entries = windows.fill(
            at, low, chain,
            first.start, first.end, first.offsets, first.row, first.role,
            NONE.start, NONE.end, NONE.offsets, NONE.row, NONE.role, bounds, index,
            c.key, c.end, c.offsets, c.row, c.role, moment.time, moment.rank,
        )  # fmt: skip
        found = Instances(c.key[right], first.start[left], c.end[right], *entries)
        mark = greatest_open(first, chain, latest, closer.pending, closer.pending, keys)
        return found, left, first.where(mark)
