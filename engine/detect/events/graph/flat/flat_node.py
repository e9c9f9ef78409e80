"""Flat expressions (`rules.algebra.stages`) in the contexts that consume occurrences."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.flat import match_scan, queue_scans, slot_scan
from tidegate.engine.detect.events.graph.flat.arrivals import (
    KeyedLine,
    by_rank,
    keyed_line,
    sources_of,
)
from tidegate.engine.detect.events.graph.flat.line import Layout
from tidegate.engine.detect.events.graph.search_limits import check_carried
from tidegate.engine.detect.events.graph.shape import Scan
from tidegate.engine.detect.events.kernels import table_rows
from tidegate.engine.detect.events.kernels.columns import ENDLESS
from tidegate.engine.detect.events.occurrences.instances import (
    NONE,
    Arrivals,
    Carry,
    Flow,
    Instances,
    Moment,
    Pending,
)
from tidegate.rules.algebra.stages import Stages
from tidegate.rules.model import Context


@dataclass(frozen=True, slots=True)
class Flat(Scan):
    """The choice among the instances of stages in sequence, in one scan over all keys.

    Reads every row of the event type of each leaf. Carries in one slot, per
    key:

        chronicle, cumulative   the occurrences not consumed that came after the stage before theirs
                                was complete
        continuous              a partial match for each initiator
        recent                  the last occurrence of each place, with the greatest instance of the
                                stages before it
    """

    context: Context
    flat: Stages
    carried_per_key_max: int = field(repr=False)
    slots: int = 1

    def scan(self, arrivals: Arrivals, carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        layout = layout_of(self.flat)
        line = self._line(layout, arrivals, carry[0], moment)
        if self.context in (Context.CHRONICLE, Context.CUMULATIVE):
            found, kept = self._queues(layout, line, moment)
        else:
            found, kept = self._matches(layout, line, carry[0].offsets, moment)
        check_carried([self._counted(kept)], self.carried_per_key_max)
        return Flow(found, Pending(kept.key, kept.start)), (kept,)

    def _counted(self, kept: Instances) -> Instances:
        """The kept instances, with an occurrence that waits in several stages only once."""
        queued = self.context in (Context.CHRONICLE, Context.CUMULATIVE)
        if not queued or not self._twice():
            return kept
        return kept.take(np.unique(kept.row, return_index=True)[1])

    def _twice(self) -> bool:
        return len({*self.flat.events}) < len(self.flat.events)

    def _queues(
        self, layout: Layout, line: KeyedLine, moment: Moment
    ) -> tuple[Instances, Instances]:
        """The scan of a context that carries occurrences not consumed: found and kept."""
        since = moment.watermark + 1 - _span(self.flat)
        if self.context is Context.CHRONICLE:
            code, positions, left = queue_scans.chronicle(layout, line.line, since)
            found = line.alike(code, positions)
        else:
            code, owner, left = queue_scans.cumulative(layout, line.line, since)
            unions = line.instances(code, *queue_scans.united(owner, len(code)))
            found = by_rank(unions, moment)  # stages overlap in a union
        waiting = line.line.code[left]
        return found, line.lasting(line.alike(waiting, left[:, None]), waiting)

    def _matches(
        self, layout: Layout, line: KeyedLine, offsets: Int64, moment: Moment
    ) -> tuple[Instances, Instances]:
        """The scan of a context that carries partial matches: found and kept."""
        scan = slot_scan.recent if self.context is Context.RECENT else match_scan.continuous
        code, positions, waiting, entries, size = scan(layout, line.line, offsets, moment.watermark)
        last = entries[np.arange(len(size)), size - 1]
        by_end, _ = table_rows.split(last, len(line.line.time))
        waiting, entries, size = waiting[by_end], entries[by_end], size[by_end]
        filled = np.arange(entries.shape[1]) < size[:, None]
        ends = np.concatenate([[0], np.cumsum(size)])
        kept = line.instances(waiting, ends, entries[filled])
        return line.alike(code, positions), line.lasting(kept, waiting)

    def _line(
        self, layout: Layout, arrivals: Arrivals, stored: Instances, moment: Moment
    ) -> KeyedLine:
        return line_of(self.flat, layout, arrivals, stored, moment, twice=self._twice())


def layout_of(flat: Stages) -> Layout:
    """The stages as the scans have them."""
    begins = np.cumsum([0, *(len(stage.places) for stage in flat.stages)])
    rows, limit = [], _span(flat)
    for s, stage in reversed([*enumerate(flat.stages)]):
        limit = limit if stage.span_micros is None else min(limit, stage.span_micros)
        rows.append((begins[s], begins[s + 1], stage.count, stage.repeated, limit))
    names = [names for stage in flat.stages for names in stage.places]
    return Layout(
        np.array(_places(flat), dtype=np.int64),
        np.repeat(np.arange(len(flat.stages)), np.diff(begins)),
        np.array([names.index(some) for some in names]),
        np.array(rows[::-1], dtype=np.int64),
    )


def line_of(
    flat: Stages,
    layout: Layout,
    arrivals: Arrivals,
    stored: Instances,
    moment: Moment,
    *,
    twice: bool,
) -> KeyedLine:
    """The line of a step. At one instant the absent event type comes first; then the stages, the
    last one first. `twice`: an event type may be in several stages."""
    stage = [*layout.stage, len(flat.events)]
    order = [stage[place] for place in layout.place]
    ends = flat.events.index(flat.absent) if flat.absent else -1
    sources = sources_of(arrivals, flat.events, order, ends, apart=flat.apart)
    return keyed_line(arrivals, NONE, sources, stored, moment, twice=twice)


def _span(flat: Stages) -> int:
    return ENDLESS if flat.span_micros is None else flat.span_micros


def _places(flat: Stages) -> list[int]:
    """The place of each leaf, numbered from the left; -1 for the absent event type."""
    places = [names for stage in flat.stages for names in stage.places]
    ahead = [(name, p) for p, names in enumerate(places) for name in names]
    found = []
    for name in flat.events:
        leaf = next((leaf for leaf in ahead if leaf[0] == name), None)
        if leaf:
            ahead.remove(leaf)
        found.append(leaf[1] if leaf else -1)
    return found
