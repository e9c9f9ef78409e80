"""Flat expressions (`rules.stages`) in any context but `restricted`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tidegate.engine.detector.contexts import stage_matches, stage_queues
from tidegate.engine.detector.contexts.limits import check_carried
from tidegate.engine.detector.contexts.timeline import ENDLESS, Timeline, by_rank, ordered, timeline
from tidegate.engine.detector.instances import (
    Carry,
    Flow,
    Instances,
    Int16,
    Int32,
    Moment,
    pending_of,
)
from tidegate.engine.values import Int64
from tidegate.rules import stages
from tidegate.rules.model import Context


@dataclass(frozen=True, slots=True)
class Stages:
    """The choice among the instances of stages in sequence, in one walk over all keys.

    Operands: the event types, every row of them, from the left. Carries per key, in one slot: in
    `chronicle` and `cumulative` the occurrences that are not used up and have all of the stage
    before them; in `continuous` each initiator that waits, with what it took; in `recent` the last
    occurrence of each event type with the greatest instance of the stages before it.
    """

    context: Context
    flat: stages.Stages
    carried_per_key_max: int = field(repr=False)
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        if self.context in (Context.CHRONICLE, Context.CUMULATIVE):
            found, kept = self._queues(operands, ordered(carry[0], moment), moment)
        else:
            stored = ordered(carry[0], moment, last=self.context is Context.RECENT)
            found, kept = self._matches(operands, stored, moment)
        if self.flat.span_micros is not None:
            kept = kept.where(kept.start > moment.watermark - self.flat.span_micros)
        check_carried([kept], self.carried_per_key_max)
        return Flow(found, pending_of([kept], operands)), (kept.by_end(),)

    def _span(self) -> int:
        span = self.flat.span_micros
        return ENDLESS if span is None else span

    def _queues(
        self, operands: Sequence[Flow], stored: Instances, moment: Moment
    ) -> tuple[Instances, Instances]:
        """Contexts that carry the occurrences that are not used up."""
        line = self._timeline(operands, stored, moment)
        layout, place = self._layout(line)
        given = (*layout, line.carried, place, line.code, line.time, self._span(), len(line.real))
        if self.context is Context.CHRONICLE:
            code, positions, left = stage_queues.chronicle(*given)
            found = _matched(line, code, positions.ravel(), positions.shape[1])
        else:
            code, owner, left = stage_queues.cumulative(*given)
            unions = line.instances(code, *stage_queues.united(owner, len(code)))
            found = by_rank(unions, moment)  # stages overlap in a union
        kept = _matched(line, line.code[left], left, 1)
        return found, line.lasting(kept, line.code[left])

    def _matches(
        self, operands: Sequence[Flow], stored: Instances, moment: Moment
    ) -> tuple[Instances, Instances]:
        """Contexts that carry what is half matched."""
        line = self._timeline(operands, stored, moment)
        (begins, *layout), place = self._layout(line)
        given = (*layout, stored.offsets, place, line.code, line.time, self._span(), len(line.real))
        if self.context is Context.RECENT:
            code, positions, kept_code, kept_positions, filled = stage_matches.recent(
                begins, *given
            )
        else:
            code, positions, kept_code, kept_positions, filled = stage_matches.continuous(*given)
        found = _matched(line, code, positions.ravel(), positions.shape[1])
        inside = np.arange(positions.shape[1]) < filled[:, None]
        offsets = np.concatenate([[0], np.cumsum(filled)])
        kept = line.instances(kept_code, offsets, kept_positions[inside])
        return found, line.lasting(kept, kept_code)

    def _layout(self, line: Timeline) -> tuple[tuple[Int64, Int64, Int64, Int64], Int16]:
        """The stages as the walks have them, and the place of each occurrence."""
        begins = np.cumsum([0, *(len(stage.places) for stage in self.flat.stages)])
        numbers = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
        count = np.array([stage.count for stage in self.flat.stages], dtype=np.int64)
        repeated = np.array([stage.repeated for stage in self.flat.stages], dtype=np.int64)
        places = [names for stage in self.flat.stages for names in stage.places]
        number = {name: p for p, names in enumerate(places) for name in names}
        of_source = np.array([number.get(name, -1) for name in self.flat.events], dtype=np.int16)
        return (begins, numbers, count, repeated), of_source[line.source]

    def _timeline(self, operands: Sequence[Flow], stored: Instances, moment: Moment) -> Timeline:
        events, absent = self.flat.events, self.flat.absent
        stage = {
            name: number
            for number, stage in enumerate(self.flat.stages)
            for names in stage.places
            for name in names
        }
        return timeline(
            [flow.instances for flow in operands],
            [stage.get(name, len(events)) for name in events],
            events.index(absent) if absent else -1,
            stored,
            moment,
            apart=self.flat.apart,
        )


def _matched(line: Timeline, code: Int32, positions: Int64, size: int) -> Instances:
    """Instances of `size` occurrences each."""
    return line.instances(code, np.arange(len(code) + 1, dtype=np.int64) * size, positions)
