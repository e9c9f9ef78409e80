"""`{window: d, every: e, of: x}`: at each e the x's of the last d."""

from __future__ import annotations

from tests.support.shown import Shown, check, shown
from tidegate.engine.detect.events.graph.operators.sliding import Sliding


@shown(
    """
    each is in several | on: {window: 6 s, every: 2 s, of: a} | a@1 a@4
    | [1,2] {a@1} [1,4] {a@1} [1,6] {a@1 a@4} [4,8] {a@4} [4,10] {a@4}
    time stops | on: {window: 6 s, every: 2 s, of: a} | a@1 | [1,2] {a@1} | 3.999999
    time stops with a tick | on: {window: 6 s, every: 2 s, of: a} | a@1
    | [1,2] {a@1} [1,4] {a@1} | 4
    at, before and after a tick | on: {window: 2 s, every: 2 s, of: a}
    | a@1.999999 a@2 a@2.000001 | [1.999999,2] {a@1.999999} [2,4] {a@2 a@2.000001}
    at and beside the start | on: {window: 3 s, every: 2 s, of: a} | a@2.999999 a@3 a@3.000001
    | [2.999999,4] {a@2.999999 a@3 a@3.000001} [3,6] {a@3 a@3.000001}
    some in none | on: {window: 1 s, every: 3 s, of: a} | a@1 a@2 a@3 | [2,3] {a@2}
    a gap | on: {window: 4 s, every: 2 s, of: a} | a@1 a@21
    | [1,2] {a@1} [1,4] {a@1} [21,22] {a@21} [21,24] {a@21}
    several event types, equal rows | on: {window: 4 s, every: 4 s, of: [b, a]} | b@1 a@1 a@1 c@2
    | [1,4] {a@1 a@1 b@1}
    each key alone | on: {window: 4 s, every: 2 s, of: a} | a@1(k=1) a@3(k=2)
    | k=1 [1,2] {a@1(k=1)} k=1 [1,4] {a@1(k=1)} k=2 [3,4] {a@3(k=2)} k=2 [3,6] {a@3(k=2)}
    a rule at its end | rule x: a ; b / rule r: {window: 4 s, every: 2 s, of: x} | a@1 b@3
    | x [1,3] {a@1 b@3} [3,4] {a@1 b@3} [3,6] {a@1 b@3}
    it starts in another | rule r: {window: 4 s, every: 2 s, of: a} / rule s: b ; r | a@1 b@2 a@3
    | [1,2] {a@1} [1,4] {a@1 a@3} [3,6] {a@3} s [2,6] {b@2 a@3}
    before the epoch | on: {window: 4 s, every: 2 s, of: a} | a@-3 | [-3,-2] {a@-3} [-3,0] {a@-3}
    """
)
def test_sliding(row: Shown) -> None:
    check(row, Sliding)


@shown(
    """
    two days, each day | on: {window: 2 d, every: 1 d, of: a} | a@1970-01-02T23:59:59Z
    | [172799,172800] {a@172799} [172799,259200] {a@172799}
    a day, in quarters | on: {window: 1 d, every: 12 h, of: a} | a@1970-01-02T00:00:00Z
    | [86400,129600] {a@86400} [86400,172800] {a@86400}
    half a day, each day | on: {window: 12 h, every: 1 d, of: a}
    | a@1970-01-02T11:59:59Z a@1970-01-02T12:00:00Z | [129600,172800] {a@129600}
    """
)
def test_days(row: Shown) -> None:
    check(row, Sliding)
