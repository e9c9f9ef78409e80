"""What a warning of repetition advises is done as it is written, and fires once."""

from __future__ import annotations

import re

import pytest

from tests.reference.evaluate import evaluate
from tidegate import rules
from tidegate.rules.checks.gaps import all_features
from tidegate.rules.model import Rulebook

EVENTS = "rulebook: b\nevents:\n" + "".join(f"  {e}: {{signal: {{k: int}}}}\n" for e in "abcd")
MINUTE = 60_000_000


def book(*lines: str) -> Rulebook:
    text = EVENTS + "rules:\n" + "".join(f"  {line}\n" for line in lines)
    return rules.load(text, features=all_features())


def fired(rulebook: Rulebook, history: str) -> int:
    """How often the rule r fires: an event a minute, `.` is none."""
    lines = [(e, n * MINUTE, {"k": 1}) for n, e in enumerate(history) if e != "."]
    return sum(d.rule == "r" for d in evaluate(rulebook, lines))


def followed(on: str, hint: str) -> list[str]:
    """The rules that a hint says to write."""
    if hint.startswith("context: recent"):
        return [f'r: {{on: "{on}", per: k, context: recent}}']
    told = re.split(r"(?<! ); ", hint.partition("of its own: ")[2])  # not the ; of expressions
    *named, written = [text for text in told if not text.startswith("if ")]
    on, comma, context = written.removeprefix("on: ").partition(", context")
    return [*named, f'r: {{on: "{on}", per: k{comma}{context}}}']


@pytest.mark.parametrize(
    ("on", "history", "again", "once"),
    [
        ("a ; b", "abbb", 3, 1),
        ("a and b and c", "abcabbb", 5, 1),
        ("not(c)[(a and b), [5 min]]", "abbb", 3, 1),
        ("a ; a", "aaaaaa", 5, 3),
        ("not(b)[a, a]", "aaaa", 3, 2),
        ("any(3, a*)", "aaaaaa", 4, 2),
        ("(a and b) + [5 min]", "abbbb", 4, 1),
        ("(a ; b) + [5 min]", "abbbb", 4, 1),
        ("any(2, a*) + [5 min]", "aaaa", 3, 2),
        ("P((a ; b), [5 min], c)", "abbb....c", 3, 1),
        ("A((a ; b), c, d)", "abcdbcd", 2, 1),
        ("a + [5 min] ; c", "a.....ccc", 3, 1),
        ("(a + [5 min]) and c", "ac...cccc", 4, 1),
        ("not(b)[a + [5 min], c]", "a.....ccc", 3, 1),
        ("P(a, [2 min], d) ; c", "a..cccd", 3, 2),
    ],
)
def test_what_is_advised_fires_once(on: str, history: str, again: int, once: int) -> None:
    found = book(f'r: {{on: "{on}", per: k}}')
    assert fired(found, history) == again
    (hint,) = [w.hint for w in found.warnings if w.code == "fires-again"]
    advised = book(*followed(on, hint))
    assert fired(advised, history) == once
    assert not [w for w in advised.warnings if w.code == "fires-again"]


def test_what_holds_and_its_end_come_in_turn() -> None:
    held = "hot: {on: {holds: a, until: b, for: 2 min}, per: k}"
    own = book(held, "r: {on: hot ; resolved hot within 1 h, per: k}")
    assert not own.warnings
    assert fired(own, "aa.bba..b..b") == 2
    assert book(held, "r: {on: resolved hot ; hot, per: k}").warnings
