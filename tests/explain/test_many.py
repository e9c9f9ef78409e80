"""Rulebooks of many rules: the work grows with the rules, not with their square."""

from __future__ import annotations

from collections.abc import Callable
from cProfile import Profile
from pathlib import Path

import pytest

from tidegate.engine.explain.explanation import explain

EVENTS = "".join(f"  {name}: {{signal: {{k: int}}}}\n" for name in ("a", "b", "c"))
RULES = {
    "alike": "a ; b within {n}",
    "one uses the last": "{last} ; a",
    "one uses the last twice": "{last} ; {last} within {n}",
    "all use one": "{first} ; a within {n}, context: recent",
    "choice": "a ; (b or c) within {n}, context: chronicle",
    "signals": "a ; b within {n}, do: [{{signal: {{c: {{k: '1'}}}}}}]",
}


def calls(work: Callable[[], object]) -> int:
    """How many functions of Python are called."""
    counted = Profile(builtins=False)
    counted.runcall(work)
    return sum(entry.callcount for entry in counted.getstats())


SHORTLY = ("one uses the last twice", "signals")


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind in SHORTLY else pytest.mark.long) for kind in RULES],
)
def test_twice_the_rules_are_twice_the_work(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "b.yaml"
    found = []
    for size, length in ((2, 1), (40, 100), (80, 1_000)):  # the first fills what is kept for all
        rules = "  r0: {on: a ; b}\n"
        for n in range(1, size):
            on = RULES[kind].format(last=f"r{n - 1}", first="r0", n=length + n)
            rules += f"  r{n}: {{on: {on}}}\n"
        file.write_text(f"rulebook: b\nevents:\n{EVENTS}rules:\n{rules}")
        found.append(calls(lambda: explain(file)))
    assert found[2] < 2.5 * found[1]
