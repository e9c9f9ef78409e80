"""How many assignments are asked of a key, and how the kernels are given them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.reference.evaluate import Line
from tests.support.history import run
from tidegate import rules
from tidegate.engine.detect.events.graph.flat import assignment_node, assignment_scan
from tidegate.engine.detect.events.graph.search_limits import RuleLimitError
from tidegate.rules.model import Rulebook, Settings

SIGNAL = "{signal: {k: bigint, v: bigint}}"


def book(on: str, steps: int = 1_000_000, where: str = "a.v < b.v") -> Rulebook:
    """Of one key no a and b fit but an a of 0."""
    rule = f'{{on: "{on} within 1 h", where: {where}, per: k, context: chronicle}}'
    events = f"{{a: {SIGNAL}, b: {SIGNAL}, c: {SIGNAL}}}"
    found = rules.load(f"rulebook: r\nevents: {events}\nrules: {{r: {rule}}}\n")
    return replace(found, settings=Settings(search_steps_max=steps))


def lines(key: int, names: str, first: int = 1) -> list[Line]:
    """`first`: the value of the first, which is 1 in the others."""
    return [(name, n, {"k": key, "v": 1 if n else first}) for n, name in enumerate(names)]


@pytest.mark.parametrize("asked_max", [1, assignment_node.ASKED_MAX])
@pytest.mark.parametrize(
    ("on", "few", "more"),
    [
        ("a ; b", "aaabbbbbb", "b"),  # 3 steps of each b
        ("not(c)[a, b]", "aabb" + 4 * "caabb", "caabb"),  # 2 steps of each b
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


def test_what_is_left_has_one_layout_however_much_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second layout would compile the kernel a second time, in the midst of a run."""
    given: dict[int, list[bool]] = {}
    kernel = assignment_scan.entries

    def entries(line: Any, found: np.ndarray[Any, Any], *more: Any) -> Any:
        given.setdefault(found.shape[1], []).append(found.flags.c_contiguous)
        return kernel(line, found, *more)

    monkeypatch.setattr(assignment_scan, "entries", entries)
    for left in range(4):
        asked = book("a ; b", where="b.v - a.v > 0")
        run(asked, lines(7, "a" + left * "b" + "a", first=0), [])
    assert {*given} >= {0, 1, 2, 3}
    assert all(all(each) for each in given.values())
