"""`{session: d, of: x}`: x's at most d apart, d after the last."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.session import Session


@shown(
    """
    one row | on: {session: 5 s, of: a} | a@1 | [1,6] {a@1}
    time stops short of its end | on: {session: 5 s, of: a} | a@1 |  | 5.999999
    time stops with its end | on: {session: 5 s, of: a} | a@1 | [1,6] {a@1} | 6
    a row at its end goes on | on: {session: 5 s, of: a} | a@1 a@6 | [1,11] {a@1 a@6}
    a row just after is another | on: {session: 5 s, of: a} | a@1 a@6.000001
    | [1,6] {a@1} [6.000001,11.000001] {a@6.000001}
    longer than any length | on: {session: 2 s, of: a} | a@1 a@2 a@4 a@6 a@7 a@10
    | [1,9] {a@1 a@2 a@4 a@6 a@7} [10,12] {a@10}
    equal rows end it | on: {session: 2 s, of: a} | a@1 a@1 | [1,3] {a@1 a@1}
    several event types | on: {session: 2 s, of: [a, b]} | a@1 b@3 c@5 a@6
    | [1,5] {a@1 b@3} [6,8] {a@6}
    each key alone | on: {session: 2 s, of: a} | a@1(k=1) a@2(k=2) a@3(k=1) a@5(k=2)
    | k=1 [1,5] {a@1(k=1) a@3(k=1)} k=2 [2,4] {a@2(k=2)} k=2 [5,7] {a@5(k=2)}
    a rule at its end | rule x: a ; b / rule r: {session: 2 s, of: x} | a@1 b@6 a@7 b@8
    | x [1,6] {a@1 b@6} x [7,8] {a@7 b@8} [6,10] {a@1 b@6 a@7 b@8}
    what it is an event of | rule r: {session: 2 s, of: a} / rule s: r ; b | a@1 a@2 b@3 b@5
    | [1,4] {a@1 a@2} s [1,5] {a@1 a@2 b@5}
    """
)
def test_session(row: Shown) -> None:
    check(row, Session)
