"""Flat expressions (`rules.algebra.stages`) of bounded length with a `where`: assignments are made
in one scan over all keys, the condition is asked of many at once, and one more scan chooses. Of the
general case see `search`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tidegate.engine.core.evaluator.predicates import is_small
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.flat import assignment_choice, assignment_scan
from tidegate.engine.detect.events.graph.flat.arrivals import KeyedLine, by_rank
from tidegate.engine.detect.events.graph.flat.assignment_conditions import conditions_of
from tidegate.engine.detect.events.graph.flat.assignment_scan import Comparisons, Walk
from tidegate.engine.detect.events.graph.flat.flat_node import layout_of, line_of
from tidegate.engine.detect.events.graph.flat.line import COUNT, FROM, LIMIT, Layout, Line
from tidegate.engine.detect.events.graph.search.asking import column_of, decided
from tidegate.engine.detect.events.graph.search.sifted import Named, Sifted
from tidegate.engine.detect.events.graph.search_limits import LimitError, check_carried
from tidegate.engine.detect.events.graph.shape import Scan
from tidegate.engine.detect.events.occurrences.instances import (
    Arrivals,
    Bools,
    Carry,
    Flow,
    Instances,
    Int32,
    Moment,
    Pending,
)
from tidegate.rules.algebra.stages import Stages
from tidegate.rules.model import Context

ASKED_MAX = 250_000  # assignments that are asked at once
KEY_STEPS = 100  # times search_steps_max: the steps of one key in one bucket
LEFT_MAX = 50_000_000  # occurrences in assignments of one bucket of which a condition is true
_HOW = {
    Context.RESTRICTED: assignment_choice.GREATEST,
    Context.CHRONICLE: assignment_choice.CHRONICLE,
    Context.RECENT: assignment_choice.RECENT,
    Context.CONTINUOUS: assignment_choice.CONTINUOUS,
}

Entries = npt.NDArray[np.int64]
"""The positions of assignments, [n, entry], in order of (time, rank, row)."""


@dataclass(frozen=True, slots=True)
class Assignments(Scan):
    """The choice among the assignments of `flat` that a condition leaves.

    Carries in one slot the occurrences of the longest span that are not used up, but those that can
    only end an assignment; in `continuous` without those that have begun one.
    """

    context: Context
    asked: Sifted
    flat: Stages
    carried_per_key_max: int = field(repr=False)
    search_steps_max: int = field(repr=False)
    slots: int = 1

    def scan(self, arrivals: Arrivals, carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        layout, rank = layout_of(self.flat), moment.rank
        twice = len({*self.flat.events}) < len(self.flat.events)
        in_time = line_of(self.flat, layout, arrivals, carry[0], moment, twice=twice)
        asked = conditions_of(self.asked, layout, in_time.line, moment)
        values = asked.compared.values
        packed = np.empty((len(in_time.line.code), 3 + len(values)), np.int64)
        own, fits, values, order = assignment_scan.key_by_key(
            in_time.line, asked.fits, values, packed
        )
        line = replace(in_time, line=own)
        compared = asked.compared._replace(values=values)
        walk = _walk(layout, own, fits, order >= own.carried)
        asking = _Asking(asked.rest, layout, own, moment) if asked.rest else None
        left = self._left(line, walk, compared, asking, rank)
        waiting = self._waiting(layout, own, moment)
        if self.context is Context.UNRESTRICTED:
            found, used = _alike(line, order, left), np.zeros(len(waiting), np.bool_)
        elif self.context is Context.CUMULATIVE:
            offsets, positions, used = assignment_choice.unite(own, left, waiting)
            found = _unions(line, offsets, positions, moment)
        else:
            names, how = self.flat.events, _HOW[self.context]
            kind = np.array([names.index(name) for name in names])
            chosen, used = assignment_choice.choose(how, own, kind, left, rank, waiting)
            found = _alike(line, order, left[chosen])
        kept = self._kept(layout, line, waiting, used)
        counted = kept.take(np.unique(kept.row, return_index=True)[1])
        check_carried([counted], self.carried_per_key_max)
        return Flow(found, Pending(kept.key, kept.start)), (kept,)

    def _left(
        self,
        line: KeyedLine,
        walk: Walk,
        compared: Comparisons,
        asking: _Asking | None,
        rank: Int64,
    ) -> Entries:
        """The assignments of which the condition is true, made and asked some at a time."""
        own = line.line
        found: list[Entries] = [np.empty((0, len(walk.steps)), np.int64)]
        most = ASKED_MAX, self.search_steps_max, KEY_STEPS * self.search_steps_max
        spent = line.real, np.zeros(len(line.real), np.int64)
        begin, left = 0, 0
        while begin < len(own.code):
            made, begin, taken = assignment_scan.assignments(
                own, walk, compared, begin, most, spent
            )
            if taken:
                raise self._too_many(line, begin, taken)
            if asking:
                made = np.ascontiguousarray(made[:, asking.true(made)])
            found.append(assignment_scan.entries(own, made, rank, len(walk.steps)))
            left += found[-1].size
            if left > LEFT_MAX:
                raise self._too_many_left()
        return np.concatenate(found)

    def _too_many(self, line: KeyedLine, position: int, taken: int) -> LimitError:
        key, most = int(line.real[line.line.code[position]]), self.search_steps_max
        if taken > most:
            return LimitError(
                "search-steps",
                f"choosing among the instances at {line.line.time[position]} us takes more than"
                f" {most} steps (setting search_steps_max)",
                "bound the expression by a shorter `within`, or raise search_steps_max",
                key,
            )
        return LimitError(
            "search-steps",
            f"choosing among the instances of one bucket takes more than {KEY_STEPS * most} steps,"
            f" {KEY_STEPS} times search_steps_max",
            "bound the expression by a shorter `within`, lower bucket_rows_max, or raise"
            " search_steps_max",
            key,
        )

    def _too_many_left(self) -> LimitError:
        return LimitError(
            "search-steps",
            f"the condition leaves more than {LEFT_MAX:,} occurrences in matches of one bucket",
            "bound the expression by a shorter `within`, or lower bucket_rows_max",
        )

    def _waiting(self, layout: Layout, line: Line, moment: Moment) -> Int64:
        """The positions that may be in a later assignment if they are not used up."""
        last = len(layout.table) - 1
        late = np.flatnonzero(line.time > moment.watermark - layout.table[last, LIMIT])
        if layout.table[last, COUNT] > 1:
            return late
        return late[layout.stage[layout.place[line.source[late]]] < last]

    def _kept(self, layout: Layout, line: KeyedLine, waiting: Int64, used: Bools) -> Instances:
        own = line.line
        if self.context is Context.CONTINUOUS:  # what has begun one may yet be in others
            used = used & (layout.stage[layout.place[own.source[waiting]]] == 0)
        left = waiting[~used]
        return line.lasting(line.alike(own.code[left], left[:, None]), own.code[left])


class _Asking:
    """A condition that is asked of assignments."""

    def __init__(self, of: Sifted, layout: Layout, line: Line, moment: Moment) -> None:
        self._of, self._place, self._line = of, layout.place, line
        shown = moment.numbering.shown(line.row)
        self._columns = [column_of(shown, each) for each in of.named]
        names = [str(each.column) for each in of.named]
        self._small = is_small(of.condition, dict(zip(names, self._columns, strict=True)))

    def true(self, made: Entries) -> Bools:
        at = [self._filling(made, each) for each in self._of.named]
        return decided(self._of, self._columns, at, made.shape[1], small=self._small)

    def _filling(self, made: Entries, named: Named) -> Int64:
        """The position that fills one of the roles of a name; where none does, that of a null."""
        place, found = self._place, np.full(made.shape[1], len(self._line.code))
        for at in np.unique(place[[*named.roles]]).tolist():
            filled = made[at]
            others = {role for role in range(len(place)) if place[role] == at} - {*named.roles}
            mask = filled >= 0
            if others:
                mask &= np.isin(self._line.source[filled], [*named.roles])
            elif mask.all():
                found = filled
                continue
            found = np.where(mask, filled, found)
        return found


def _walk(layout: Layout, line: Line, fits: Bools, new: Bools) -> Walk:
    """How assignments that end at a `new` position are made."""
    stage, counts = layout.stage[layout.place], layout.table[:, COUNT]
    steps = np.repeat(np.arange(len(counts)), counts)[::-1].copy()
    before = assignment_scan.earlier(line, layout.place, fits, len(layout.stage))
    ends = new & fits & (stage == len(counts) - 1)[line.source]
    limits = layout.table[:, LIMIT].copy()
    bounds = np.append(layout.table[:, FROM], len(layout.stage))
    return Walk(layout.place, ends, steps, bounds, limits, before)


def _alike(line: KeyedLine, order: Int32, left: Entries) -> Instances:
    """Assignments as instances, in order of their ends. `order`: that of the positions in time."""
    count, size = left.shape
    packed = np.empty((count, 3 + 2 * size), np.int64)
    key, start, end, row, role = assignment_choice.by_end(line.line, line.real, order, left, packed)
    offsets = np.arange(count + 1) * size
    return Instances(key, start, end, offsets, row, role)


def _unions(line: KeyedLine, offsets: Int64, positions: Int64, moment: Moment) -> Instances:
    """Unions as instances, in order of their ends: their positions are in order of time."""
    code = line.line.code[positions[offsets[:-1]]]
    return by_rank(line.instances(code, offsets, positions), moment).by_end()
