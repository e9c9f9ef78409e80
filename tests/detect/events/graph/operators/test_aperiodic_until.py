"""`A(a, b, [d])` and `A*(a, b, [d])`: windows that time closes."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.aperiodic_until import (
    AperiodicStarUntil,
    AperiodicUntil,
)


@shown(
    """
    both ends | A(a, b, [2]) | a@1 b@1 b@3 | [1,1] {b@1} [3,3] {b@3}
    a microsecond too late | A(a, b, [2]) | a@1 b@3.000001 |
    in the later of two windows | A(a, b, [2]) | a@1 a@2 b@4 | [4,4] {b@4}
    a composite b that ends too late | A(a, b ; c, [2]) | a@1 b@2 c@4 |
    each key alone | A(a, b, [2]) | a@1(k=1) a@2(k=2) b@4(k=1) b@4(k=2) | k=2 [4,4] {b@4(k=2)}
    """
)
def test_aperiodic_until(row: Shown) -> None:
    check(row, AperiodicUntil)


@shown(
    """
    both ends | A*(a, b, [2]) | b@0 a@1 b@1 b@3 b@4 | [1,3] {b@1 b@3}
    nothing inside, after the last line | A*(a, b, [2]) | a@1 | [1,3] {}
    time stops short of it | A*(a, b, [2]) | a@1 b@2 |  | 2.999999
    two windows | A*(a, b, [2]) | a@1 b@2 a@2 b@4 | [1,3] {b@2} [2,4] {b@2 b@4}
    each key alone | A*(a, b, [2]) | a@1(k=1) a@2(k=2) b@3(k=1) | k=1 [1,3] {b@3(k=1)} k=2 [2,4] {}
    """
)
def test_aperiodic_star_until(row: Shown) -> None:
    check(row, AperiodicStarUntil)
