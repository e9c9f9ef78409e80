"""`{window: d, of: x}`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.graph.graph import Node
from tidegate.engine.detect.events.graph.grids import Grid, grid
from tidegate.engine.detect.events.graph.rows import closed, rows_of
from tidegate.engine.detect.events.kernels import windows
from tidegate.engine.detect.events.occurrences.instances import Carry, Flow, Moment
from tidegate.rules.expressions.windows import Tumbling as Expression

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Tumbling:
    """`[[{window: d, of: x}]]` = the union of `instant(x) ; t` in `cumulative`, t on the grid of d:
    the x's of [t - d, t), at t. The t is no occurrence.

    The operand has every row of x. Carries for each key the window that is open, from its first row
    to its last: all of them end at one instant. Bound: the x's of d.
    """

    grid: Grid
    carried_per_key_max: int = field(repr=False)
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        rows = rows_of(carry[0], operands[0].instances, moment)
        carried = np.repeat(self.due(carry)[:1], rows.carried)
        end = np.concatenate([carried, self.grid.after(rows.time[rows.carried :])])
        offsets, order = windows.tumbling(rows.key, end, moment.keys + 1)
        found = rows.windows(offsets, order)
        return closed(found, end[order[offsets[:-1]]], self.carried_per_key_max, moment)

    def due(self, carry: Carry, /) -> Int64:
        return self.grid.after(carry[0].end)


def node(e: Expression, build: Builder, horizon: int | None) -> Node:
    part = build.rows(e.part, horizon)
    shape = Tumbling(grid(e.length, build.zone), build.settings.carried_per_key_max)
    return build.make(e, shape, (part,), part.keys, horizon, timed=True)
