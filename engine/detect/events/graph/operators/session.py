"""`{session: d, of: x}`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.graph.rows import closed, rows_of
from tidegate.engine.detect.events.kernels import windows
from tidegate.engine.detect.events.occurrences.instances import Carry, Flow, Moment
from tidegate.rules.expressions.windows import Session as Expression

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Session:
    """`[[{session: d, of: x}]]` = the union of `(i ; q) or q` in `cumulative`, i = `instant(x)`,
    q = `not(i)[i, [d]]`: x's at most d apart, at the last + d.

    The operand has every row of x. Carries for each key the session that is open, from its first
    row to its last. Bound: none.
    """

    gap_micros: int
    carried_per_key_max: int = field(repr=False)
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        rows = rows_of(carry[0], operands[0].instances, moment)
        found = windows.sessions(rows.key, rows.time, self.gap_micros, moment.keys + 1)
        sessions = rows.windows(*found)
        end = sessions.end + self.gap_micros
        return closed(sessions, end, self.carried_per_key_max, moment)

    def due(self, carry: Carry, /) -> Int64:
        return carry[0].end + self.gap_micros


def node(e: Expression, build: Builder, horizon: int | None) -> Node:
    part = build.rows(e.part, horizon)
    shape = Session(e.gap.micros, build.settings.carried_per_key_max)
    return build.make(e, shape, (part,), part.keys, horizon, timed=True)
