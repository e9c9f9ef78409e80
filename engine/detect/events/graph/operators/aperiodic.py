"""`A(a, b, c)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.detect.events.graph.graph import Node, first_roles, mixed
from tidegate.engine.detect.events.graph.operators.open_windows import last_before, still_open
from tidegate.engine.detect.events.kernels.joins import latest_start
from tidegate.engine.detect.events.occurrences.instances import Carry, Flow, Moment, bare, concat
from tidegate.rules.expressions import nodes as x

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Aperiodic:
    """`[[A(a, b, c)]]` = { b : some window holds b }. A window opens at e(a). It closes at e(c) of
    the first c with s(c) > e(a). Both ends belong to it.

    Operands: a, b, c. `role` is the first role of b. Only the instants of a and c count. The last a
    with e(a) <= s(b) decides: b passes unless a c that began after e(a) has ended before e(b).
    Carries per key, while its window is open, the instant of the last a; and that of the last a at
    each pending start of b. Bound: 1 + the pending starts of b. Source: Snoop, `A`.
    """

    role: int
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        opener, part, closer = (flow.instances for flow in operands)
        keys = moment.keys
        first = concat([carry[0], bare(opener.key, opener.end, opener.end)])
        low, latest = latest_start(closer.columns, part.key, part.end, False, keys)
        at, _ = last_before(first, part.key, part.start + 1, keys)
        ended = np.append(first.end, 0)
        mark = (at >= 0) & (ended[at] >= low)
        none = np.full(len(first), -1, dtype=np.int64)
        kept = still_open(first, none, latest, operands[1].pending, keys, same=True)
        found = part.where(mark).shifted(self.role)
        return Flow(found, operands[1].pending), (first.where(kept),)


def node(e: x.Aperiodic, build: Builder, horizon: int | None) -> Node:
    # a window may have opened long before b: only b is limited by a `within`
    found = build.operand(e.opener, None), build.passed(e.part, horizon)
    a, b, c = operands = build.alike((*found, build.operand(e.closer, None)), horizon)
    shape, apart = Aperiodic(first_roles(operands)[1]), mixed((a, b), c)
    return build.make(e, shape, operands, b.keys, None, point=b.point, apart=apart)
