"""`{holds: x, until: y, for: d, keep: e}`, and `resolved` of it."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.holding import Holding, Turn


@shown(
    """
    with all since the first | on: {holds: a, until: b, for: 5 s} | a@1 a@3 a@6 a@7
    | [1,6] {a@1 a@3 a@6}
    time stops short of it | on: {holds: a, until: b, for: 5 s} | a@1 |  | 5.999999
    time stops with it | on: {holds: a, until: b, for: 5 s} | a@1 | [1,6] {a@1} | 6
    an end in time | on: {holds: a, until: b, for: 5 s} | a@1 b@6 |
    an end too late | on: {holds: a, until: b, for: 5 s} | a@1 b@6.000001 | [1,6] {a@1}
    an end comes first at one instant | on: {holds: a, until: b, for: 5 s} | b@1 a@1 | [1,6] {a@1}
    it begins anew | on: {holds: a, until: b, for: 5 s} | a@1 a@2 b@3 a@3 a@4 | [3,8] {a@3 a@4}
    once as long as it lasts | on: {holds: a, until: b, for: 2 s} | a@1 a@3 a@5 a@9
    | [1,3] {a@1 a@3}
    lists of both | on: {holds: [a, b], until: [c, d], for: 2 s} | a@1 b@2 d@4 b@5 c@6
    | [1,3] {a@1 b@2}
    what begins it ends it | on: {holds: a, until: a, for: 2 s} | a@1 a@2 a@3 a@6
    | [3,5] {a@3} [6,8] {a@6}
    each key alone | on: {holds: a, until: b, for: 2 s} | a@1(k=1) a@1(k=2) b@2(k=1)
    | k=2 [1,3] {a@1(k=2)}
    an end of every key | on: {holds: a, until: b, for: 2 s} | a@1(k=1) a@1(k=2) b@2 a@2(k=2)
    | k=2 [2,4] {a@2(k=2)}
    rules at their ends | rule x: a ; b / rule y: c ; d / rule r: {holds: x, until: y, for: 3 s}
    | a@1 b@2 c@3 d@6 | x [1,2] {a@1 b@2} y [3,6] {c@3 d@6} [2,5] {a@1 b@2}
    """
)
def test_what_fires(row: Shown) -> None:
    check(row, Holding)


BEGINS = "rule x: {holds: a, until: b, for: 2 s} / rule r: {holds: resolved x, until: x, for: 2 s}"
HELD = "rule x: {holds: a, until: b, for: 2 s, keep: 3 s} / rule r: resolved x"


@shown(
    f"""
    after keep | {HELD} | a@1 b@5 | x [1,3] {{a@1}} [8,8] {{b@5}}
    the first end counts | {HELD} | a@1 b@5 b@6 | x [1,3] {{a@1}} [8,8] {{b@5}}
    all ends of an instant | {HELD} | a@1 b@5 b@5 | x [1,3] {{a@1}} [8,8] {{b@5 b@5}}
    a beginning at the end of keep | {HELD} | a@1 b@5 a@8 | x [1,3] {{a@1}}
    a beginning just after it | {HELD} | a@1 b@5 a@8.000001
    | x [1,3] {{a@1}} [8,8] {{b@5}} x [8.000001,10.000001] {{a@8.000001}}
    kept, and over at a later end | {HELD} | a@1 b@5 a@7 b@9 | x [1,3] {{a@1}} [12,12] {{b@9}}
    a beginning at the instant of the end | {HELD} | a@1 b@5 a@5 | x [1,3] {{a@1}}
    an end at the instant that kept it | {HELD} | a@1 b@5 a@7 b@7 | x [1,3] {{a@1}}
    over at an end after that | {HELD} | a@1 b@5 a@7 b@7 b@8 | x [1,3] {{a@1}} [11,11] {{b@8}}
    what was cut short is not over | {HELD} | a@1 b@2 b@3 |
    time stops short of it | {HELD} | a@1 b@5 | x [1,3] {{a@1}} | 7.999999
    without keep at once | rule x: {{holds: a, until: b, for: 2 s}} / rule r: resolved x
    | a@1 b@5 a@5 b@9 | x [1,3] {{a@1}} [5,5] {{b@5}} x [5,7] {{a@5}} [9,9] {{b@9}}
    in an expression | rule x: {{holds: a, until: b, for: 2 s}} / rule r: x ; resolved x within 5 s
    | a@1 b@5 a@6 b@12 | x [1,3] {{a@1}} [1,5] {{a@1 b@5}} x [6,8] {{a@6}}
    as what begins | {BEGINS} | a@1 b@5 a@6 b@7 | x [1,3] {{a@1}} [5,7] {{b@5}}
    """
)
def test_what_is_resolved(row: Shown) -> None:
    check(row, Turn)
