"""A rule's name: its detections as occurrences (S8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.engine.detect.events.graph.shape import greatest
from tidegate.engine.detect.events.occurrences.instances import Carry, Flow, Moment


@dataclass(frozen=True, slots=True)
class Detection:
    """`[[R]]` = the detections of rule R, each an occurrence with the interval of the detection, at
    its end.

    `root` is the digest of R's node. `columns` are the key columns by the `per:` of the rule that
    uses R, None if that sees all keys. `all_rows`: all detections of a key and instant count, not
    only the greatest. The operand is what R detects in the step, from the activation on, with R's
    pending starts. Carries nothing: bound 0. Source: Carlson & Lisper, an expression as an event of
    another. Here R's own context has chosen.
    """

    rule: str
    root: str
    columns: tuple[str, ...] | None
    activation: int
    all_rows: bool
    slots: int = 0

    def step(self, operands: Sequence[Flow], carry: Carry, moment: Moment, /) -> tuple[Flow, Carry]:
        arrivals = operands[0].instances
        found = arrivals if self.all_rows else greatest(arrivals, moment)
        return Flow(found, operands[0].pending), carry
