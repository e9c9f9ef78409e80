"""`not(b)[a, c]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.engine.detect.events.graph.graph import Node, first_roles, mixed
from tidegate.engine.detect.events.graph.operators.open_windows import greatest_open, last_before
from tidegate.engine.detect.events.kernels import joins, openers
from tidegate.engine.detect.events.kernels.entries import join_entries
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
class Not:
    """`[[not(b)[a, c]]]` = { a u c : e(a) < s(c), no b with e(a) < s(b), e(b) <= e(c) }.

    Operands: b, a, c. `opener` and `closer` are the first roles of a and c. A b cancels the a's
    that ended before it began, once it has ended. Restricted: a c finds the greatest a that ended
    before s(c) and that no b up to e(c) has cancelled. Carries per key the greatest a that is not
    cancelled; for each pending start of b the greatest a that this b would leave; and the same as
    of each pending start of c. Bound: (1 + the pending starts of c) * (1 + those of b). Source:
    Snoop, `NOT`; here with interval semantics.
    """

    opener: int
    closer: int
    slots: int = 1

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        absent, opener, closer = operands
        b, c, keys = absent.instances, closer.instances, moment.keys
        first = concat([carry[0], opener.instances.shifted(self.opener)])
        chain = openers.previous_greater(first.columns, moment.ranks, keys, False)
        low, latest = joins.latest_start(b.columns, c.key, c.end, True, keys)
        at, _ = last_before(first, c.key, c.start, keys)
        left = openers.climb(at, chain, first.end, low)
        right = (left >= 0).nonzero()[0]
        left = left[right]
        entries = join_entries(first.columns, c.columns, self.closer, left, right)
        found = Instances(c.key[right], first.start[left], c.end[right], *entries)
        mark = greatest_open(first, chain, latest, closer.pending, absent.pending, keys)
        kept = first.where(mark)
        return Flow(found, pending_of([kept], [opener])), (kept,)


def node(e: x.Not, build: Builder, horizon: int | None) -> Node:
    b, a, c = operands = build.operands(e.operands(), horizon)
    _, opener, closer = first_roles(operands)
    apart = mixed((a, c), b)
    return build.make(e, Not(opener, closer), operands, a.keys, horizon, apart=apart)
