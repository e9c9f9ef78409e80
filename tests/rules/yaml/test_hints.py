"""What is said where YAML cannot be read: the place, and the text that was probably meant."""

from __future__ import annotations

import pytest

from tidegate import rules
from tidegate.rules.errors import InputError


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("r: {on: not(b)[a, [5 min]], per: x}", "2:15", '{ } quote it: on: "not(b)[a, [5 min]]"'),
        ("r: {on: L: (a), do: []}", "2:10", '{ } quote it: on: "L: (a)"'),
        ("r: {w: kind in ('a', 'b')}", "2:25", "{ } quote it: w: \"kind in ('a', 'b')\""),
        ('r: {w: kind in ("a", "b")}', "2:25", '{ } quote it: w: \'kind in ("a", "b")\''),
        ("r:\n  on: L: (a) ; a", "3:8", 'quote the text: on: "L: (a) ; a" (in event'),
        ("r:\n  w: 'x' = kind\n  b: 1", "3:10", "quote the text: w: \"'x' = kind\""),
        ("r:\n  w: `x` = 1", "3:6", 'quote the text: w: "`x` = 1"'),
        ("r:\n  w: > 5\n  b: 1", "3:8", 'quote the text: w: "> 5"'),
        ("a:\n    b: 1\n  c: 2", "4:3", "begin 'c' in column 5, as 'b' in line 3"),
        ("r:\n    on: a\n     if: x", "4:8", "begin 'if' in column 5, as 'on' in line 3"),
        ("r:\n  on a\n  if: x", "4:5", "a colon is missing in the line before: write on: .."),
        ("r:\n\ta: 1", "3:1", "indent with spaces, not tabs"),
        ('r:\n  on: "a ; a\n  x: 1', "3:7", "the quote that opens in line 3 is not closed"),
        ("r: {a: 'x}\ns: {a: 'y'}", "3:9", "a quote in line 2 is not closed"),
        ("e: {a: {s: {}}\nrules:\n  r: 1", "3:1", "a bracket that opens in line 2 is not closed"),
        ("r: {a: 1}}", "2:10", "a bracket is closed that is not open"),
        ('r: "a\\d"', "2:6", "in single quotes a backslash stands for itself"),
        ("r:\n  - a\n  b: 1", "4:3", "each item of a list begins with a dash"),
    ],
)
def test_malformed_yaml(text: str, place: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        rules.load(f"rulebook: b\n{text}\n", file="b.yaml")
    (problem,) = caught.value.problems
    line, _, column = place.partition(":")
    assert (problem.place.line, problem.message[:4]) == (int(line), "YAML")
    assert hint in problem.hint
    assert problem.place.column in (int(column), int(column) - 1, 1)
