"""`a and b`, `all(..)`, `any(m, ..)`: any order, the greatest instance of each operand."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.conjunction import Conjunction


@shown(
    """
    simultaneous | a and b | a@1 b@1 | [1,1] {a@1 b@1}
    the latest of each | a and b | a@1 a@2 b@3 b@4 | [2,3] {a@2 b@3} [2,4] {a@2 b@4}
    one occurrence for both operands | a and a | a@1 a@2 | [1,1] {a@1} [2,2] {a@2}
    the last m of any(m, ..) | any(2, a, b, c) | a@1 c@2 b@3 | [1,2] {a@1 c@2} [2,3] {c@2 b@3}
    one operand never | all(a, b, c) | a@1 b@2 a@3 |
    an older one that arrives | (b or (a ; d)) and c | a@1 c@4 b@5 d@6
        | [4,5] {c@4 b@5} [1,6] {a@1 c@4 d@6}
    a broadcast with each key | w and a | w@1 a@2(k=1) a@3(k=2)
        | k=1 [1,2] {w@1 a@2(k=1)} k=2 [1,3] {w@1 a@3(k=2)}
    what is of every key is later | ((a ; w) or (w ; w) or b) and c
        | a@1(k=1) w@2 b@5(k=1) c@5(k=1) w@6
        | k=1 [5,5] {b@5(k=1) c@5(k=1)} k=1 [2,6] {w@2 c@5(k=1) w@6}
    """
)
def test_conjunction(row: Shown) -> None:
    check(row, Conjunction)
