"""`every(n, a)`: the last n, at the n-th, the 2n-th, .."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.every import Every


@shown(
    """
    what is left over waits | every(2, a) | a@1 a@2 a@3 a@4 a@5 | [1,2] {a@1 a@2} [3,4] {a@3 a@4}
    every one | every(1, a) | a@1 a@2 | [1,1] {a@1} [2,2] {a@2}
    all at one instant: the last group | every(2, a) | a@1(v=1) a@1(v=2) a@1(v=3) a@1(v=4)
        | [1,1] {a@1(v=3) a@1(v=4)}
    a composite counts once per instant | every(2, (a and b)) | a@1 b@1 b@2 | [1,2] {a@1 b@1 b@2}
    each key counts alone | every(2, a) | a@1(k=1) a@2(k=2) a@3(k=1) | k=1 [1,3] {a@1(k=1) a@3(k=1)}
    """
)
def test_every(row: Shown) -> None:
    check(row, Every)
