"""`a ; b`: b begins after a has ended; of several a's the latest start."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.sequence import Sequence


@shown(
    """
    simultaneous | a ; b | a@1 b@1 |
    the latest a, for each b | a ; b | a@1 a@2 b@3 b@4 | [2,3] {a@2 b@3} [2,4] {a@2 b@4}
    equal rows | a ; b | a@1(v=1) a@1(v=1) b@2 | [1,2] {a@1(v=1) b@2}
    a composite b begins after a | a ; (b ; c) | b@1 a@2 c@3 b@4 c@5 | [2,5] {a@2 b@4 c@5}
    a composite b that begins with a | a ; (b ; c) | a@1 b@1 c@2 |
    a key that never closes | a ; b | a@1(k=1) a@2(k=2) b@3(k=2) | k=2 [2,3] {a@2(k=2) b@3(k=2)}
    """
)
def test_sequence(row: Shown) -> None:
    check(row, Sequence)
