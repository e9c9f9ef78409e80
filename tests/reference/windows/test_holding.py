"""The definition of `holds` on histories worked out by hand."""

from __future__ import annotations

import pytest

from tests.reference.values import Occurrence
from tests.reference.windows.holding import Alert, Fate, alerts

FOR, KEEP = 10, 5


def of(text: str, keep: int = KEEP) -> list[Alert]:
    """The alerts of a history like `o1 u3 o3`: an `over` at 1, both at 3."""
    lines = [(word[0], int(word[1:])) for word in text.split()]
    overs, unders = (
        [Occurrence(name, name, time, time) for name, time in lines if name == which]
        for which in "ou"
    )
    return alerts(overs, unders, lambda t: t + FOR, lambda u: u + keep)


def said(text: str, keep: int = KEEP) -> list[str]:
    """`1-11 {1, 4} until 25`: pending since 1, fired at 11 with two overs, resolved at 25."""
    found = []
    for alert in of(text, keep):
        inside = ", ".join(str(o.end) for o in alert.overs)
        ends = f" until {alert.resolved}" if alert.resolved is not None else ""
        fired = f"-{alert.fired} {{{inside}}}" if alert.fired is not None else " cut short"
        found.append(f"{alert.start}{fired}{ends}")
    return found


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param("o1", ["1-11 {1}"], id="one over is enough"),
        pytest.param("o1 o4 o11 o12", ["1-11 {1, 4, 11}"], id="overs up to the firing"),
        pytest.param("u1 o1", ["1-11 {1}"], id="an under comes before an over of its instant"),
        pytest.param("o1 u11", ["1 cut short"], id="an under at the very end"),
        pytest.param("o1 u12", ["1-11 {1} until 17"], id="an under just after it"),
        pytest.param("o1 u11 o11", ["1 cut short", "11-21 {11}"], id="and pending anew"),
        pytest.param("o1 u5 o6 u7", ["1 cut short", "6 cut short"], id="twice cut short"),
        pytest.param("o1 u20", ["1-11 {1} until 25"], id="resolved after keep"),
        pytest.param("o1 u20 o25", ["1-11 {1}"], id="an over at the end of keep"),
        pytest.param("o1 u20 o26", ["1-11 {1} until 25", "26-36 {26}"], id="just after it"),
        pytest.param("o1 u20 o24 u26", ["1-11 {1} until 31"], id="kept, then resolved"),
        pytest.param("o1 u20 u22", ["1-11 {1} until 25"], id="the first under counts"),
        pytest.param("o1 u20 o20", ["1-11 {1}"], id="an over at the under's instant"),
        pytest.param("o1 u20 o22 u22 u23", ["1-11 {1} until 28"], id="an under that comes first"),
        pytest.param("u1 u2", [], id="nothing is over"),
    ],
)
def test_by_hand(history: str, expected: list[str]) -> None:
    assert said(history) == expected


def test_without_keep_an_under_resolves_at_once() -> None:
    assert said("o1 u20 o20 u40", keep=0) == ["1-11 {1} until 20", "20-30 {20} until 40"]
    (one,) = of("o1 u20 u20", keep=0)
    assert [u.end for u in one.unders] == [20, 20], "all of that instant"


def test_what_became_of_alerts() -> None:
    assert [a.fate for a in of("o1 u2 o3 u30 o31 u40 o50")] == [
        Fate.CUT_SHORT,
        Fate.RESOLVED,
        Fate.OPEN,
    ]
    assert [a.kept for a in of("o1 u30 o31 u40")] == [1]
