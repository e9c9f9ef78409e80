"""The order of rules that fire in one bucket."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from tidegate import rules
from tidegate.rules.analysis.graph import later_ones, stages
from tidegate.rules.checks.gaps import all_features
from tidegate.rules.model import Rule


def book(**written: str) -> dict[str, Rule]:
    """Rules by name; of each, what stands beside `on`."""
    lines = "".join(f"  {name}: {{on: e, {keys}}}\n" for name, keys in written.items())
    text = f"rulebook: b\nevents: {{e: {{signal: {{}}}}}}\nrules:\n{lines}"
    return dict(rules.load(text, features=all_features()).rules)


def staged(found: dict[str, Rule], fired: str | None = None) -> list[list[str]]:
    """The rules that fired, all unless named, by their stages."""
    chosen = [found[name] for name in fired.split()] if fired is not None else [*found.values()]
    by_name = stages(chosen, later_ones(found))
    numbers = sorted({*by_name.values()})
    assert numbers == [*range(len(numbers))]
    return [sorted(n for n, stage in by_name.items() if stage == k) for k in numbers]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"a": "", "b": "", "c": ""}, [["a", "b", "c"]]),
        ({"a": "", "b": "priority: 5", "c": "priority: -1", "d": "priority: 5"},
         [["b", "d"], ["a"], ["c"]]),
        ({"b": "precedes: a", "a": "", "c": ""}, [["b", "c"], ["a"]]),
        ({"a": "follows: [b, c]", "b": "", "c": ""}, [["b", "c"], ["a"]]),
        # c precedes b, and b is of higher priority
        ({"c": "precedes: b", "b": "priority: 5"}, [["c"], ["b"]]),
        ({"c": "precedes: b", "b": "priority: 5", "a": "", "z": ""}, [["c"], ["b"], ["a", "z"]]),
        ({"c": "precedes: b", "b": "priority: 5", "x": "priority: 5", "y": "priority: 3"},
         [["x"], ["c"], ["b"], ["y"]]),
    ],
)  # fmt: skip
def test_g15_order(written: dict[str, str], expected: list[list[str]]) -> None:
    assert staged(book(**written)) == expected


def test_g15_order_holds_through_rules_that_did_not_fire() -> None:
    found = book(a="precedes: b", b="precedes: c, priority: 7", c="", d="")
    assert staged(found) == [["a"], ["b"], ["c", "d"]]
    assert staged(found, "c a d") == [["a", "d"], ["c"]]
    assert staged(found, "c d") == [["c", "d"]]


def test_g15_whatever_the_names() -> None:
    """Each rule comes after those that precede it; of two that nothing ties, the one of higher
    priority comes first; other names change nothing."""
    chance = random.Random(13)
    for _ in range(40):
        names = [f"r{n}" for n in range(7)]
        priorities = {name: chance.randint(0, 2) for name in names}
        pairs = [pair for pair in combinations(names, 2) if chance.random() < 0.15]
        fired = [name for name in names if chance.random() < 0.8]
        plain, other = (
            _stages_named(new, priorities, pairs, fired)
            for new in (names, _shuffled(names, chance))
        )
        assert plain == other
        later = later_ones(_book_of(dict(zip(names, names, strict=True)), priorities, pairs))
        tied = {name for pair in pairs for name in pair}
        for one, two in combinations(fired, 2):
            if two in later.get(one, ()):
                assert plain[one] < plain[two]
            elif not {one, two} & tied:
                assert (plain[one] > plain[two]) == (priorities[two] > priorities[one])


def _stages_named(
    new: list[str], priorities: dict[str, int], pairs: list[tuple[str, str]], fired: list[str]
) -> dict[str, int]:
    """The stages of what fired, where the rules have new names; by their old ones."""
    renamed = dict(zip(priorities, new, strict=True))
    found = _book_of(renamed, priorities, pairs)
    by_name = stages([found[renamed[name]] for name in fired], later_ones(found))
    return {name: by_name[renamed[name]] for name in fired}


def _book_of(
    renamed: dict[str, str], priorities: dict[str, int], pairs: list[tuple[str, str]]
) -> dict[str, Rule]:
    written = {}
    for name, priority in priorities.items():
        later = [renamed[b] for a, b in pairs if a == name]
        precedes = f", precedes: [{', '.join(later)}]" if later else ""
        written[renamed[name]] = f"priority: {priority}{precedes}"
    return book(**written)


def _shuffled(names: list[str], chance: random.Random) -> list[str]:
    return chance.sample(names, len(names))
