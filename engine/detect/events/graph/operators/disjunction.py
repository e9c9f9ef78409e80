"""`a or b ..`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tidegate.engine.detect.events.graph.graph import Node, first_roles
from tidegate.engine.detect.events.graph.shape import Scan, greatest
from tidegate.engine.detect.events.occurrences.instances import (
    Arrivals,
    Carry,
    Flow,
    Moment,
    concat,
    no_pending,
    pending_of,
    points,
)
from tidegate.rules.expressions import nodes as x

if TYPE_CHECKING:
    from tidegate.engine.detect.events.graph.builder import Builder


@dataclass(frozen=True, slots=True)
class Either:
    """`[[a or b]]` = `[[a]]` u `[[b]]`; restricted: the greater of the two that end now.

    `roles` is the first role of each operand. `all_rows`: the plain union, for `unrestricted`.
    Carries nothing: bound 0. Source: Carlson & Lisper, disjunction; Snoop `OR`.
    """

    roles: tuple[int, ...]
    all_rows: bool
    slots: int = 0

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        parts = [o.instances.shifted(r) for o, r in zip(operands, self.roles, strict=True)]
        found = concat(parts).by_end()
        if not self.all_rows:
            found = greatest(found, moment)
        return Flow(found, pending_of([], operands)), carry


@dataclass(frozen=True, slots=True)
class Union(Scan):
    """`[[a or b]]` of event types, all of them keyed or none: every row, as the timeline has them.

    Event type events[n] has the role roles[n]. Carries nothing: bound 0.
    """

    events: tuple[str, ...]
    roles: tuple[int, ...]
    slots: int = 0

    def scan(self, arrivals: Arrivals, carry: Carry, _: Moment, /) -> tuple[Flow, Carry]:
        of = dict(zip(self.events, self.roles, strict=True))
        role = np.array([*(of.get(event, -1) for event in arrivals.events), -1], np.int16)
        role = role[arrivals.code]
        rows = np.arange(arrivals.first, arrivals.first + len(role))
        time = arrivals.time.copy()  # a frozen column would have all kernels compiled once more
        found = replace(points(arrivals.key, time, rows), role=role)
        return Flow(found.where(role >= 0), no_pending()), carry


def node(e: x.Or, build: Builder, horizon: int | None) -> Node:
    return disjoined(e, build, build.operands(e.parts, horizon), horizon)


def disjoined(
    e: x.Expression,
    build: Builder,
    operands: tuple[Node, ...],
    horizon: int | None,
    first: tuple[int, ...] | None = None,
) -> Node:
    """The disjunction of nodes: of all rows, in these `first` roles, if they are given."""
    own, every = any(o.own for o in operands), any(o.every for o in operands)
    shape = Either(first or first_roles(operands), all_rows=first is not None)
    point = all(o.point for o in operands)
    return build.make(e, shape, operands, (own, every), horizon, point=point)
