"""`{window: d, of: x}`: each full length of time with an x inside, at its end."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.tumbling import Tumbling


@shown(
    """
    it ends after the last line | on: {window: 5 s, of: a} | a@1 a@2 | [1,5] {a@1 a@2}
    time stops short of its end | on: {window: 5 s, of: a} | a@1 |  | 4.999999
    time stops with its end | on: {window: 5 s, of: a} | a@1 | [1,5] {a@1} | 5
    at, before and after its end | on: {window: 5 s, of: a} | a@4.999999 a@5 a@5.000001
    | [4.999999,5] {a@4.999999} [5,10] {a@5 a@5.000001}
    an empty one is none | on: {window: 5 s, of: a} | a@1 a@11 a@12
    | [1,5] {a@1} [11,15] {a@11 a@12}
    several event types, equal rows | on: {window: 5 s, of: [b, a]} | b@1 a@1 a@1 c@2 b@7
    | [1,5] {a@1 a@1 b@1} [7,10] {b@7}
    one event type named twice | on: {window: 5 s, of: [a, a or b]} | a@1 b@2 | [1,5] {a@1 b@2}
    each key alone | on: {window: 5 s, of: a} | a@1(k=1) a@2(k=2) a@4(k=1) a@6(k=2)
    | k=1 [1,5] {a@1(k=1) a@4(k=1)} k=2 [2,5] {a@2(k=2)} k=2 [6,10] {a@6(k=2)}
    a rule at its end | rule x: a ; b / rule r: {window: 5 s, of: x} | a@1 a@4 b@6 b@7
    | x [4,6] {a@4 b@6} x [4,7] {a@4 b@7} [6,10] {a@4 b@6 b@7}
    instant says so, too | rule x: a ; b / rule r: {window: 5 s, of: [x, instant(x)]} | a@4 b@6
    | x [4,6] {a@4 b@6} [6,10] {a@4 b@6}
    what it is an event of | rule r: {window: 5 s, of: a} / rule s: r ; b | a@1 b@4 b@5 b@6
    | [1,5] {a@1} s [1,6] {a@1 b@6}
    it starts in another | rule r: {window: 5 s, of: a} / rule s: b ; r | a@1 b@2 a@6 b@7
    | [1,5] {a@1} [6,10] {a@6} s [2,10] {b@2 a@6}
    before the epoch | on: {window: 5 s, of: a} | a@-6 a@-5 a@-1 | [-6,-5] {a@-6} [-5,0] {a@-5 a@-1}
    """
)
def test_tumbling(row: Shown) -> None:
    check(row, Tumbling)


@shown(
    """
    a day in UTC | on: {window: 1 d, of: a} | a@1970-01-02T23:59:59Z a@1970-01-03T00:00:00Z
    | [172799,172800] {a@172799} [172800,259200] {a@172800}
    """
)
def test_days(row: Shown) -> None:
    check(row, Tumbling)
