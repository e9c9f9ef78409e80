"""`not(b)[a, c]`: no b after a, up to and with the instant of c."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.negation import Not


@shown(
    """
    b at the instant of a | not(b)[a, c] | a@1 b@1 c@2 | [1,2] {a@1 c@2}
    b at the instant of c | not(b)[a, c] | a@1 b@2 c@2 c@3 |
    c at the instant of a | not(b)[a, c] | a@1 c@1 |
    b before the latest a | not(b)[a, c] | a@1 b@2 a@3 c@4 b@5 c@6 | [3,4] {a@3 c@4}
    a composite b that begins with a | not(b ; d)[a, c] | a@1 b@1 d@2 c@3 | [1,3] {a@1 c@3}
    b of another key | not(b)[a, c] | a@1(k=1) a@1(k=2) b@2(k=1) c@3(k=1) c@3(k=2)
        | k=2 [1,3] {a@1(k=2) c@3(k=2)}
    """
)
def test_not(row: Shown) -> None:
    check(row, Not)
