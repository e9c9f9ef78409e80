"""`{over: {window: d, of: x, fire: p, rearm: q}}`: the x's of the last d, when p becomes true."""

from __future__ import annotations

import pytest

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators import crossing
from tidegate.engine.detect.events.graph.operators.crossing import BLOCK_ROWS, Crossing


@pytest.fixture(autouse=True, params=[1, BLOCK_ROWS], ids=["key by key", "all keys at once"])
def blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossing, "BLOCK_ROWS", request.param)


@shown(
    """
    once, until it is armed | on: {over: {window: 5 s, of: a, fire: count(*) >= 2}}
    | a@1 a@2 a@3 a@9 a@10 | [1,2] {a@1 a@2} [9,10] {a@9 a@10}
    d, less and more apart | on: {over: {window: 5 s, of: a, fire: count(*) >= 2}}
    | a@1 a@6 a@20 a@24.999999 a@40 a@45.000001 | [20,24.999999] {a@20 a@24.999999}
    one enters as one leaves | on: {over: {window: 5 s, of: a, fire: count(*) = 1}} | a@1 a@6
    | [1,1] {a@1}
    when one leaves | on: {over: {window: 5 s, of: a, fire: count(*) = 1, rearm: count(*) = 2}}
    | a@1 a@2 | [1,1] {a@1} [2,6] {a@2}
    an instant that arms does not fire
    | on: {over: {window: 5 s, of: a, fire: count(*) > 0, rearm: count(*) > 1}} | a@1 a@2 a@3
    | [1,1] {a@1} [1,3] {a@1 a@2 a@3} [3,7] {a@3}
    time stops short of it
    | on: {over: {window: 5 s, of: a, fire: count(*) = 1, rearm: count(*) = 2}} | a@1 a@2
    | [1,1] {a@1} | 5.999999
    an empty one does not fire | on: {over: {window: 5 s, of: a, fire: count(*) < 1}} | a@1 |
    but arms, if that is true | on: {over: {window: 5 s, of: a, fire: count(*) > 0}} | a@1 a@9
    | [1,1] {a@1} [9,9] {a@9}
    null is not true | on: {over: {window: 5 s, of: a, fire: sum(v) > 0, rearm: sum(v) <= 0}}
    | a@1(v=1) a@9(v=1) a@20(v=0) a@30(v=1) | [1,1] {a@1(v=1)} [30,30] {a@30(v=1)}
    without rearm null arms | on: {over: {window: 5 s, of: a, fire: sum(v) > 0}}
    | a@1(v=1) a@9(v=1) | [1,1] {a@1(v=1)} [9,9] {a@9(v=1)}
    together at one instant | on: {over: {window: 5 s, of: [a, b], fire: sum(v) = 3}}
    | a@1(v=1) b@1(v=2) | [1,1] {a@1(v=1) b@1(v=2)}
    each key alone | on: {over: {window: 5 s, of: a, fire: count(*) > 1}}
    | a@1(k=1) a@2(k=2) a@3(k=1) | k=1 [1,3] {a@1(k=1) a@3(k=1)}
    each armed alone | on: {over: {window: 5 s, of: a, fire: count(*) > 1}}
    | a@1(k=1) a@2(k=2) a@3(k=1) a@4(k=2) a@20(k=2)
    | k=1 [1,3] {a@1(k=1) a@3(k=1)} k=2 [2,4] {a@2(k=2) a@4(k=2)}
    a rule at its end | rule x: a ; b / rule r: {over: {window: 2 s, of: x, fire: count(*) > 1}}
    | a@1 b@3 a@4 b@5 | x [1,3] {a@1 b@3} x [4,5] {a@4 b@5}
    """
)
def test_crossing(row: Shown) -> None:
    check(row, Crossing)
