"""`a within d`: the bound is inclusive, and an older start hides no nearer one."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.within import Within


@shown(
    """
    at the very end | a ; b within 2 | a@1 b@3 | [1,3] {a@1 b@3}
    a microsecond too late | a ; b within 2 | a@1 b@3.000001 |
    within 0 | a and b within 0 | a@1 b@1 b@2 | [1,1] {a@1 b@1}
    a nearer start | a ; b within 2 | a@1 a@4 b@5 | [4,5] {a@4 b@5}
    one within another | (a ; b within 2) ; c within 3 | a@1 b@3 c@4 a@5 b@6 c@9
        | [1,4] {a@1 b@3 c@4}
    what may still begin in time | b ; (a ; c within 3) | b@1 a@2 b@4.999999 c@5
        | [1,5] {b@1 a@2 c@5}
    each key alone | a ; b within 2 | a@1(k=1) a@2(k=2) b@4(k=1) b@4(k=2)
        | k=2 [2,4] {a@2(k=2) b@4(k=2)}
    """
)
def test_within(row: Shown) -> None:
    check(row, Within)
