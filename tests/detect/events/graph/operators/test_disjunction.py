"""`a or b`: every occurrence of plain events; else of those that end together the greatest."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.disjunction import Either, Union


@shown(
    """
    every row | a or b | a@1 a@1 b@1 | [1,1] {a@1} [1,1] {a@1} [1,1] {b@1}
    each key's | b or a or c | b@1(k=1) a@1(k=2) d@2(k=1) c@3(k=1)
        | k=1 [1,1] {b@1(k=1)} k=2 [1,1] {a@1(k=2)} k=1 [3,3] {c@3(k=1)}
    beside those of another rule | rule r: a or b / rule s: c | a@1 c@2 b@3
        | r [1,1] {a@1} s [2,2] {c@2} r [3,3] {b@3}
    """
)
def test_union_of_event_types(row: Shown) -> None:
    check(row, Union)


@shown(
    """
    the later start of two that end together | (a ; c) or b | a@1 b@2 c@2 | [2,2] {b@2}
    that end apart | (a ; c) or b | b@1 a@2 c@3 | [1,1] {b@1} [2,3] {a@2 c@3}
    simultaneous openers | (a or b) ; c | a@1 b@1 c@2 | [1,2] {b@1 c@2}
    each key alone | (a ; c) or b | a@1(k=1) b@2(k=2) c@2(k=1)
        | k=1 [1,2] {a@1(k=1) c@2(k=1)} k=2 [2,2] {b@2(k=2)}
    """
)
def test_either(row: Shown) -> None:
    check(row, Either)
