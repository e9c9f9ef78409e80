"""`A*(a, b, c)` over distinct event types of one key, in any context but `restricted`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.flat import window_scans
from tidegate.engine.detect.events.graph.flat.arrivals import (
    KeyedLine,
    by_rank,
    keyed_line,
    sources_of,
)
from tidegate.engine.detect.events.graph.flat.queue_scans import united
from tidegate.engine.detect.events.graph.search_limits import check_carried
from tidegate.engine.detect.events.graph.shape import Scan
from tidegate.engine.detect.events.kernels.columns import ENDLESS
from tidegate.engine.detect.events.occurrences.instances import (
    NONE,
    Arrivals,
    Carry,
    Flow,
    Instances,
    Moment,
    Pending,
    concat,
    points,
)
from tidegate.rules.algebra.forms import Window
from tidegate.rules.model import Context


@dataclass(frozen=True, slots=True)
class Windows(Scan):
    """The choice among the windows that close now, in one scan over all keys.

    Reads every row of the event types. Carries per key, in one slot: the a's that are not consumed
    and whose windows are open; the b's that are not consumed and came since the first of these a's.
    """

    context: Context
    window: Window
    carried_per_key_max: int = field(repr=False)
    slots: int = 1

    def scan(self, arrivals: Arrivals, carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        line = self._line(arrivals, carry[0], moment)
        found, left = self._scan(line, moment)
        kept = line.lasting(line.alike(line.line.code[left], left[:, None]), line.line.code[left])
        if self.window.span_micros is not None:
            kept = kept.where(kept.start > moment.watermark - self.window.span_micros)
        check_carried([kept], self.carried_per_key_max)
        return Flow(found, Pending(kept.key, kept.start)), (kept,)

    def _line(self, arrivals: Arrivals, stored: Instances, moment: Moment) -> KeyedLine:
        """The line of the step. At one instant the absent event type comes first; then b; then c or
        the own terminators; then a."""
        leaves, closings = self.window.events, NONE
        absent = len(leaves) - 1 if self.window.absent else -1
        order = [0, 2, *([] if self.window.length_micros else [1]), *([3] if absent > 0 else [])]
        if self.window.length_micros:
            closings = self._closings(arrivals, stored, moment)
            order.append(1)
        sources = sources_of(arrivals, leaves, order, absent, apart=True)
        return keyed_line(arrivals, closings, sources, stored, moment)

    def _scan(self, line: KeyedLine, moment: Moment) -> tuple[Instances, Int64]:
        """The detections, and the positions of the occurrences that are left."""
        span = ENDLESS if self.window.span_micros is None else self.window.span_micros
        limits = (self.window.length_micros, span)
        place = np.array([0, 1, 2, 2])
        if self.context is Context.CONTINUOUS:
            rank = moment.rank
            code, end, offsets, positions, left = window_scans.continuous(
                place, line.line, rank, *limits
            )
        else:
            which = self.context is Context.CUMULATIVE, self.context is Context.RECENT
            code, end, owner, left = window_scans.consuming(*which, place, line.line, *limits)
            offsets, positions = united(owner, len(code))
        found = by_rank(line.instances(code, offsets, positions), moment)
        return replace(found, start=moment.time[found.row[found.offsets[:-1]]], end=end), left

    def due(self, carry: Carry, /) -> Int64:
        if not self.window.length_micros:
            return np.empty(0, np.int64)
        openers = carry[0].where(carry[0].role == 0)
        return openers.end + self.window.length_micros

    def _closings(self, arrivals: Arrivals, stored: Instances, moment: Moment) -> Instances:
        """The own terminators that are due."""
        arrived = arrivals.of(self.window.events[0])
        openers = concat([stored.where(stored.role == 0), arrived])
        close = openers.end + self.window.length_micros
        due = close <= moment.watermark
        moment.timers.fire(close[due])
        return points(openers.key[due], close[due], openers.row[due])
