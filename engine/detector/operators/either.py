"""`a or b ..`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.engine.detector.instances import (
    Carry,
    Flow,
    Moment,
    concat,
    pending_of,
)
from tidegate.engine.detector.operators.shape import greatest


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
