"""`a - b`: b wholly inside, both ends included."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.minus import Minus


@shown(
    """
    b at the start | (a ; c) - b | a@1 b@1 c@2 |
    b at the end | (a ; c) - b | a@1 c@2 b@2 |
    b just outside, before and after | (a ; c) - b | b@0.999999 a@1 c@2 b@2.000001 | [1,2] {a@1 c@2}
    b between an early and a late start | (a ; c) - b | a@1 b@2 a@3 c@4 | [3,4] {a@3 c@4}
    a composite b begins before | (a ; c) - (b ; d) | b@0 a@1 d@2 c@3 | [1,3] {a@1 c@3}
    b of another key | (a ; c) - b | a@1(k=1) a@1(k=2) b@2(k=1) c@3(k=1) c@3(k=2)
        | k=2 [1,3] {a@1(k=2) c@3(k=2)}
    """
)
def test_minus(row: Shown) -> None:
    check(row, Minus)
