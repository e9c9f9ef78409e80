"""`a ; [d]` and `not(b)[a, [d]]`: at the point d after a."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.until import Until


@shown(
    """
    it runs out after the last line | a ; [2] | a@1 | [1,3] {a@1}
    time stops short of it | a ; [2] | a@1 |  | 2.999999
    time stops with it | a ; [2] | a@1 a@2 | [1,3] {a@1} | 3
    b with a, and just after the end | not(b)[a, [2]] | a@1 b@1 b@3.000001 | [1,3] {a@1}
    b at the very end | not(b)[a, [2]] | a@1 b@3 |
    a composite b that begins with a | not(b ; c)[a, [2]] | a@1 b@1 c@2 | [1,3] {a@1}
    each key alone | not(b)[a, [2]] | a@1(k=1) a@1(k=2) b@2(k=1) | k=2 [1,3] {a@1(k=2)}
    """
)
def test_until(row: Shown) -> None:
    check(row, Until)
