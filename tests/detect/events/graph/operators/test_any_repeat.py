"""`any(m, a*)`: m distinct occurrences, the latest."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.any_repeat import AnyRepeat


@shown(
    """
    with each one from the m-th on | any(2, a*) | a@1 a@2 a@3 | [1,2] {a@1 a@2} [2,3] {a@2 a@3}
    simultaneous ones are distinct | any(2, a*) | a@1(v=1) a@1(v=2) | [1,1] {a@1(v=1) a@1(v=2)}
    equal rows are two | any(2, a*) | a@1(v=1) a@1(v=1) | [1,1] {a@1(v=1) a@1(v=1)}
    fewer than m | any(3, a*) | a@1 a@2 |
    a composite counts once per instant | any(2, (a and b)*) | a@1 b@1 b@2 | [1,2] {a@1 b@1 b@2}
    each key counts alone | any(2, a*) | a@1(k=1) a@2(k=2) a@3(k=1) | k=1 [1,3] {a@1(k=1) a@3(k=1)}
    """
)
def test_any_repeat(row: Shown) -> None:
    check(row, AnyRepeat)
