"""`every(n, a)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.engine.detect.events.graph.graph import Node, mixed
from tidegate.engine.detect.events.graph.shape import greatest, in_rank, united
from tidegate.engine.detect.events.kernels.unions import each_group
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
class Every:
    """`[[every(n, a)]]` = { the last n occurrences of a, at the n-th, 2n-th, .. since activation }.
    A composite a counts once per instant. Simultaneous occurrences count in order of rank.

    `count` is n. `all_rows`: all instances of one instant count, for the choice at the root.
    Carries per key the occurrences since the last detection. Bound: n - 1. Source: this engine.
    """

    count: int
    all_rows: bool = False
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        part = concat([carry[0], in_rank(operands[0].instances, moment)])
        members, mark = each_group(self.count, part.key, moment.keys)
        last = members[:, -1]
        found = united(part.key[last], part.end[last], members, part, moment)
        kept = part.where(mark)
        chosen = found if self.all_rows else greatest(found, moment)
        return Flow(chosen, pending_of([kept], operands)), (kept,)


def node(e: x.Every, build: Builder, _: int | None, *, all_rows: bool = False) -> Node:
    part = build.each(e.part, None)
    shape, point, apart = Every(e.count, all_rows), part.point and e.count == 1, mixed((part,))
    return build.make(e, shape, (part,), part.keys, None, point=point, apart=apart)
