"""`A*(a, b, c)` over distinct event types of one key, in any context but `restricted`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tidegate.engine.detector.contexts import window_walks
from tidegate.engine.detector.contexts.limits import check_carried
from tidegate.engine.detector.contexts.stage_queues import united
from tidegate.engine.detector.contexts.timeline import ENDLESS, by_rank, ordered, timeline
from tidegate.engine.detector.instances import (
    Carry,
    Flow,
    Instances,
    Moment,
    concat,
    pending_of,
    points,
)
from tidegate.engine.values import Int64
from tidegate.rules.model import Context
from tidegate.rules.windows import Window


@dataclass(frozen=True, slots=True)
class Windows:
    """The choice among the windows that close now, in one walk over all keys.

    Operands: the event types, every row of them, from the left. Carries per key, in one slot, the
    a's whose windows are open and not used up, and the b's since the first of these that are not.
    """

    context: Context
    window: Window
    carried_per_key_max: int = field(repr=False)
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        stored = ordered(carry[0], moment)
        parts = [flow.instances for flow in operands]
        absent = len(parts) - 1 if self.window.absent else -1
        order = [0, 2, *([] if self.window.length_micros else [1]), *([3] if absent > 0 else [])]
        if self.window.length_micros:
            parts.append(self._closings(concat([stored.where(stored.role == 0), parts[0]]), moment))
            order.append(1)
        line = timeline(parts, order, absent, stored, moment, apart=True)
        kind = np.minimum(line.source, np.int16(2))
        span = ENDLESS if self.window.span_micros is None else self.window.span_micros
        limits = (self.window.length_micros, span, len(line.real))
        if self.context is Context.CONTINUOUS:
            code, end, offsets, positions, left = window_walks.continuous(
                line.carried, kind, line.code, line.time, moment.rank[line.row], *limits
            )
        else:
            which = self.context is Context.CUMULATIVE, self.context is Context.RECENT
            code, end, owner, left = window_walks.using_up(
                *which, line.carried, kind, line.code, line.time, *limits
            )
            offsets, positions = united(owner, len(code))
        found = by_rank(line.instances(code, offsets, positions), moment)
        found = replace(found, start=moment.time[found.row[found.offsets[:-1]]], end=end)
        kept = line.instances(line.code[left], np.arange(len(left) + 1), left)
        kept = line.lasting(kept, line.code[left])
        if self.window.span_micros is not None:
            kept = kept.where(kept.start > moment.watermark - self.window.span_micros)
        check_carried([kept], self.carried_per_key_max)
        return Flow(found, pending_of([kept], operands)), (kept.by_end(),)

    def due(self, carry: Carry, /) -> Int64:
        if not self.window.length_micros:
            return np.empty(0, np.int64)
        openers = carry[0].where(carry[0].role == 0)
        return openers.end + self.window.length_micros

    def _closings(self, openers: Instances, moment: Moment) -> Instances:
        """The own terminators that are due."""
        close = openers.end + self.window.length_micros
        due = close <= moment.watermark
        moment.timers.fire(close[due])
        return points(openers.key[due], close[due], openers.row[due])
