"""Rules beside a rulebook's text."""

from __future__ import annotations

import pytest

from tidegate import rules
from tidegate.rules.errors import InputError

TEXT = "rulebook: bank\nevents: {a: {signal: {k: bigint}}}\nrules:\n  r: {on: a, per: k}\n"


def test_they_are_rules_as_any_other() -> None:
    book = rules.load(TEXT, added={"s": "{on: r ; a}", "t": "on: s\npriority: 3\n"})
    assert [(name, r.pattern.text, r.precedence.priority) for name, r in book.rules.items()] == [
        ("r", "a", 0),
        ("s", "r ; a", 0),
        ("t", "s", 3),
    ]
    alone = rules.load("rulebook: x\nevents: {a: {signal: {}}}\n", added={"s": "{on: a}"})
    assert [*alone.rules] == ["s"]


def test_what_is_wrong_with_one_names_it_in_place_of_the_file() -> None:
    with pytest.raises(InputError) as caught:
        rules.load(TEXT, added={"s": "{on: b ; a}", "t": "{if: 1}", "q": "{on: a, on: r}"})
    assert "<rule q>:1:" in str(caught.value)
    with pytest.raises(InputError) as caught:
        rules.load(TEXT, added={"s": "{on: b ; a}", "t": "{if: 1}"})
    shown = str(caught.value)
    assert "<rule s>:1:6: unknown event 'b'" in shown
    assert "<rule t>:1:1" in shown
    with pytest.raises(InputError, match=r"<text>:4:3: the rule 'r' stands here, and was put"):
        rules.load(TEXT, added={"r": "{on: a}"})


def test_a_key_beside_the_text_stands_in_the_place_of_the_rule_s_own() -> None:
    beside = {"r/disabled_for": "{disabled_for: [7, {k: 8}]}", "gone/disabled_for": "{x: 1}"}
    book = rules.load(TEXT, added=beside)
    assert book.rules["r"].disabled_for == ({"k": 7}, {"k": 8})
    assert [*book.rules] == ["r"]
