"""`a[i]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.detect.events.graph.graph import Node, mixed
from tidegate.engine.detect.events.graph.shape import in_rank
from tidegate.engine.detect.events.kernels.columns import LAST
from tidegate.engine.detect.events.kernels.unions import numbered
from tidegate.engine.detect.events.occurrences.instances import Carry, Flow, Moment, bare
from tidegate.rules.expressions import nodes as x

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Nth:
    """`[[a[i]]]` = { the i-th occurrence of a since activation }. A composite a counts once per
    instant. Simultaneous occurrences count in order of rank.

    `index` is i. Carries per key the number of occurrences so far, as the start of a bare interval.
    Bound: 1.
    Source: Hinze & Voisard, selection.
    """

    index: int
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        part = in_rank(operands[0].instances, moment)
        seen = np.zeros(moment.keys + 1, dtype=np.int64)
        seen[carry[0].key] = carry[0].start
        mark = numbered(self.index, seen, part.key)
        key = np.flatnonzero(seen).astype(np.int32)
        counts = bare(key, seen[key], np.full(len(key), LAST))
        return Flow(part.where(mark), operands[0].pending), (counts,)


def node(e: x.Nth, build: Builder, _: int | None) -> Node:
    part = build.each(e.part, None)
    shape, point, apart = Nth(e.index), part.point, mixed((part,))
    return build.make(e, shape, (part,), part.keys, None, point=point, apart=apart)
