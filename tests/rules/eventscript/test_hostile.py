"""Texts that nobody would write: each is read or refused, with places inside the text, and soon."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tidegate.rules.errors import InputError
from tidegate.rules.eventscript import reader

FOLDER = Path(__file__).parent
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]+")
_SNIPPETS = [
    *("A()", "B(x)", "x", "1", "2.5", '"s"', "null", "{", "}", "(", ")", "[", "]", ";", ":", "?"),
    *("|", "&", "-", "*", "+", "{2,3}", "{0}", "=", "==", "!>", "!", ".", ",", "x = x;", "{ }"),
    *("in long A", "out {} Z", "group(x)", "group[0]", "case { A > 1 ? B }", "type P = P[]"),
    *("elapse[1 day]()", "arrive[.:00]()", "for (i: 1, 2)", "while (true)", "new long[2]", "é"),
]
_RIGHT = [
    "in long A, {double x; string s;} P group(s) out long y, {} z\n"
    "(A(a) {2,} | P(p) {x = p.x; n = n + 1; !> y(n); })* elapse[2.5 days]() {!> z();}",
    "in double A case {A > 4 ? B : C}, long D type Q = {long k;}[] out Q q\n"
    "(B() & -C()) - (D(d){2,3} arrive[.:30:00](at)) { k = new {long k;}[3]; k[1].k = d; !> q(k); }",
    "function double f(double) in double A out double y\n"
    "A(x) { for (i: 1, 3) { x > i ? x = f(x) - i; : x = -x; } while (x > 1) x = x / 2; !> y(x); }",
]


def scripts() -> list[str]:
    """The scripts of the other tests."""
    files = [FOLDER / "refused.txt", FOLDER / "warned.txt"]
    cases = [case for file in files for case in file.read_text().split("=== ")[1:]]
    return [case.partition("\n")[2].partition("---\n")[0] for case in cases]


def read(text: str) -> bool:
    """Whether the text is a script; fails where anything but an `InputError` comes of it."""
    try:
        reader.read(text)
    except InputError as error:
        problems = error.problems
    else:
        return True
    lines = text.split("\n")
    for problem in problems:
        assert 1 <= problem.place.line <= len(lines), text
        assert 1 <= problem.place.column <= len(lines[problem.place.line - 1]) + 1, text
        assert str(problem)
    assert problems
    return False


def test_scripts_with_parts_put_in_or_left_out() -> None:
    chosen = random.Random(15)
    wrong = [each for each in scripts() if len(each) < 400]
    seen = {True: 0, False: 0}
    for _ in range(2_000):
        tokens = _TOKEN.findall(chosen.choice(chosen.choice((_RIGHT, wrong))))
        for _ in range(chosen.randint(1, 3)):
            at = chosen.randrange(len(tokens) + 1)
            change = chosen.choice(("drop", "double", "put in", "other"))
            if change == "drop":
                del tokens[at : at + 1]
            elif change == "double":
                tokens[at:at] = tokens[at : at + 1]
            else:
                tokens[at : at + (change == "other")] = [chosen.choice(_SNIPPETS)]
        seen[read("".join(tokens))] += 1
    assert seen[True] > 100
    assert seen[False] > 1_000


LARGER = [  # of those below that take seconds: read by the long suite
    "in long A " + "(" * 50_000 + "A()" + ")" * 50_000,
    "in long A A(x) { x = " + "-" * 5_000 + "1; }",
    "in long A A(x) { " + "x > 1 ? " * 3_000 + "x = 1; }",
    "in long A A()" + " | A()" * 5_000,
    "in long A A() { " + "".join(f"x{n} = x{n + 1}; " for n in range(3_000)) + "x3000 = 1; }",
    "in long A A() { " + "".join(f"y = x{n}; " for n in range(3_000)) + "}",
]


@pytest.mark.parametrize(
    "text",
    [
        "(" * 50_000,
        "in long A " + "(" * 20_000 + "A()" + ")" * 20_000,
        "in long A A() " + "{" * 5_000 + "}" * 5_000,
        "in long A A(x) { x = " + "-" * 2_500 + "1; }",
        "in long A A(x) { x = " + "(" * 5_000 + "1" + ")" * 5_000 + "; }",
        "in long A A(x) { x = 1" + " + 1" * 5_000 + "; }",
        "in long A A(x) { " + "x > 1 ? " * 1_500 + "x = 1; }",
        "in long A A(x) { y = " + "{a: " * 3_000 + "1" + "}" * 3_000 + "; }",
        "in " + "{" * 3_000 + "long a;" + "} a;" * 3_000 + " A A()",
        "in long" + "[]" * 3_000 + " A A()",
        "in long A A()" + " | A()" * 2_500,
        "in long A A()" + " - A()" * 3_000,
        "in long A " + "(" * 90 + "A()" + "{9}){9}" * 90,
        "in long A A() { " + "".join(f"x{n} = x{n + 1}; " for n in range(1_500)) + "x1500 = 1; }",
        "in long A A() { " + "".join(f"y = x{n}; " for n in range(1_500)) + "}",
        "".join(f"type T{n + 1} = T{n}[] " for n in range(3_000)) + "type T0 = T3000 in T0 A A()",
        "in long A /*" + "*" * 50_000,
        'in long A A() { s = "' + "\\" * 50_001,
        "in long A A(){" + "9" * 50_000 + "}",
        "in long A A(x) { x = " + "9" * 50_000 + "; }",
        "in long A A(x) { x = " + "9" * 50_000 + ".5; }",
        *(pytest.param(text, marks=pytest.mark.long) for text in LARGER),
    ],
    ids=lambda text: f"{text[:24]}..{len(text)}",
)
def test_large_texts(text: str) -> None:
    read(text)


def test_deepest_that_is_read() -> None:
    """Nothing behind the parser fails on what the parser lets through."""
    read_at_all = [
        "in long A " + "(" * 45 + "A()" + ")*" * 45,
        "in long A A(x) { x = " + "-" * 90 + "x; }",
        "in long A A(x) { " + "x > 1 ? { " * 30 + "x = 1;" + " }" * 30 + " }",
        "in long A A(x) { y = " + "{a: " * 40 + "1" + "}" * 40 + "; }",
    ]
    assert all(read(text) for text in read_at_all)
