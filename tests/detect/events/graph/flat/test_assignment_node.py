"""How many assignments are asked of a key."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.reference.evaluate import Line
from tests.support.history import run
from tidegate import rules
from tidegate.engine.detect.events.graph.flat import assignment_node
from tidegate.engine.detect.events.graph.search_limits import RuleLimitError
from tidegate.rules.model import Rulebook, Settings

SIGNAL = "{signal: {k: bigint, v: bigint}}"


def book(on: str, steps: int = 1_000_000) -> Rulebook:
    """No a and b fit."""
    rule = f'{{on: "{on} within 1 h", where: a.v < b.v, per: k, context: chronicle}}'
    events = f"{{a: {SIGNAL}, b: {SIGNAL}, c: {SIGNAL}}}"
    found = rules.load(f"rulebook: r\nevents: {events}\nrules: {{r: {rule}}}\n")
    return replace(found, settings=Settings(search_steps_max=steps))


def lines(key: int, names: str) -> list[Line]:
    return [(name, n, {"k": key, "v": 1}) for n, name in enumerate(names)]


@pytest.mark.parametrize("asked_max", [1, assignment_node.ASKED_MAX])
@pytest.mark.parametrize(
    ("on", "few", "more"),
    [
        ("a ; b", "aaabbbb", "b"),  # of the b: 3, 4, 5, 6 steps; then 7
        ("not(c)[a, b]", "aabb" + 3 * "caabb", "caabb"),  # 2 and 3 steps between two c
    ],
)
def test_the_steps_of_one_key_have_a_limit_though_no_assignment_is_left(
    on: str, few: str, more: str, asked_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few are asked at once; and what is asked of another key does not count."""
    monkeypatch.setattr(assignment_node, "KEY_STEPS", 2)
    monkeypatch.setattr(assignment_node, "ASKED_MAX", asked_max)
    rulebook = book(on, 10)
    assert run(rulebook, [*lines(7, few), *lines(8, few)], []) == []
    with pytest.raises(RuleLimitError) as caught:
        run(rulebook, [*lines(7, few), *lines(8, few + more)], [])
    assert caught.value.message.startswith("rule r, key k=8: ")
    assert "more than 20 steps, 2 times search_steps_max" in caught.value.message
