"""`a and b ..`, `all(a, b, ..)`, `any(m, a, b, ..)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.detect.events.graph.graph import Node, first_roles
from tidegate.engine.detect.events.graph.shape import united
from tidegate.engine.detect.events.kernels.conjoin import Operands, conjoin
from tidegate.engine.detect.events.occurrences.instances import (
    Carry,
    Flow,
    Instances,
    Moment,
    concat,
    pending_of,
)
from tidegate.rules.expressions import nodes as x

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Conjunction:
    """`[[any(m, a_1, .., a_n)]]` = { union of one instance each of m distinct a_i }, in any order,
    also simultaneous. `and` and `all` have m = n.

    `roles` is the first role of each operand, `count` is m. Carries per key and operand the
    greatest instance so far, lastmax(a_i). Bound: n. Detects the greatest union of m of these, at
    least one of which arrives now. Source: Carlson & Lisper, conjunction `+`; Snoop `ANY`.
    """

    count: int
    roles: tuple[int, ...]

    @property
    def slots(self) -> int:
        return len(self.roles)

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        parts: list[Instances] = []
        for operand, stored, role in zip(operands, carry, self.roles, strict=True):
            parts += [stored, operand.instances.shifted(role)]
        sizes = np.array([len(part) for part in parts])
        bounds = np.concatenate([[0], np.cumsum(sizes)])[::2]
        pool = concat(parts)
        pooled = Operands(bounds, sizes[::2], pool.columns)
        (key, end, members), slot = conjoin(pooled, self.count, moment.ranks, moment.keys)
        members = members.reshape(len(key), self.count)
        carried = tuple(pool.take(np.sort(kept[kept >= 0])) for kept in slot.T)
        found = united(key, end, members, pool, moment)
        return Flow(found, pending_of(carried, operands)), carried


def node(e: x.And | x.AnyOf, build: Builder, horizon: int | None) -> Node:
    operands = build.operands(e.parts, horizon)
    count = min(e.count, len(e.parts)) if isinstance(e, x.AnyOf) else len(e.parts)
    own, every = any(o.own for o in operands), sum(o.every for o in operands) >= count
    shape = Conjunction(count, first_roles(operands))
    point = count == 1 and all(o.point for o in operands)
    return build.make(e, shape, operands, (own, every), horizon, point=point)
