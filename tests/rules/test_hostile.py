"""Whatever the text, it is read or refused with a place: nothing else is ever raised."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.hits import detecting, saw
from tidegate import parse, rules
from tidegate.rules.checks.gaps import all_features
from tidegate.rules.errors import InputError, Problem

BANK = Path(__file__).with_name("bank.yaml").read_text(encoding="utf-8")

# fmt: off
WORDS = [
    "a", "b", "A", "P", "A*", "P*", "any", "all", "every", "not", "or", "and", "within", "without",
    "then", "begin_of", "failed",
    "at", "cron", "(", ")", "[", "]", ",", ";", "-", "+", "*", ":", "|", "&",
    "5", "0", "1.5", "min", "month", "x9", "<(08:00:00)*/*/*>", "(00:05:00)00/00/00", "08:00",
    '"0 17 * * *"', "'x'", "<", '"', "é", "\n", "\t", "=",
]
PIECES = [
    ":", "- ", "[", "]", "{", "}", "&a ", "*a", "!x ", "'", '"', "|", ">", "#", "\n", "  ", "\t",
    "null", "true", "7", "on", "on:", "rules:", "events:", "signal", "[]", "{}", "~", "?", "---\n",
]
# fmt: on


def problems(read: Callable[[], object]) -> tuple[Problem, ...]:
    """What is refused; empty where it is read."""
    try:
        read()
    except InputError as error:
        return error.problems
    return ()


@detecting
@settings(max_examples=600, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_expressions(text: str) -> None:
    lines = text.split("\n")
    for problem in saw(problems(lambda: parse(text))):
        assert 1 <= problem.place.line <= len(lines)
        assert 1 <= problem.place.column <= len(lines[problem.place.line - 1]) + 1
        assert "^" in problem.excerpt


@detecting
@settings(max_examples=250, deadline=None)
@given(st.integers(0, len(BANK)), st.integers(0, 60), st.lists(st.sampled_from(PIECES), max_size=3))
def test_rulebooks(begin: int, length: int, pieces: list[str]) -> None:
    text = BANK[:begin] + "".join(pieces) + BANK[begin + length :] + "\n"
    lines = text.splitlines()
    file = "/books/bank.yaml"
    for problem in saw(problems(lambda: rules.load(text, file=file, features=all_features()))):
        assert 1 <= problem.place.line <= len(lines) + 1
        assert str(problem).startswith(f"{file}:")
