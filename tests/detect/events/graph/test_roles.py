"""Roles: numbered from the left, with their labels, and which of them are parameters."""

from __future__ import annotations

import pytest

from tidegate.engine.detect.events.graph.roles import roles
from tidegate.rules.expressions.parser import parse


@pytest.mark.parametrize(
    ("on", "events", "parameters"),
    [
        ("a ; b ; a", "a b a", "yes yes yes"),
        ("A*(a, b or c, d)", "a b c d", "no yes yes no"),
        ("A*(a, a, a)", "a a a", "no yes no"),
        ("A*(a, A*(b, c, d), [5 s])", "a b c d", "no no yes no"),
        ("P*(a, [5 s], b) ; c", "a b tick c", "no no yes yes"),
        ("A*(P*(a, [5 s], b), c, d)", "a b tick c d", "no no no yes no"),
        ("P(a, [5 s], b)", "a b tick", "yes yes yes"),
        ("not(b)[a, [5 s]]", "b a", "yes yes"),
    ],
)
def test_roles_stand_from_the_left_with_ticks_last(on: str, events: str, parameters: str) -> None:
    found = roles(parse(on))
    assert ["tick" if "tick" in r.event else r.event for r in found] == events.split()
    assert ["yes" if r.parameter else "no" for r in found] == parameters.split()


def test_labels_are_listed_outermost_first() -> None:
    found = roles(parse("x:(a ; y:(b and c)) ; d"))
    assert [role.labels for role in found] == [("x",), ("x", "y"), ("x", "y"), ()]
