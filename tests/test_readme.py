"""What README shows of the language is the language."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tidegate import load, parse

TEXT = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
EXPRESSIONS = re.findall(r"^\| `([^`]+)`(?: \(t\))? \| (?!.*\|.*\|)", TEXT, re.MULTILINE)


def test_every_operator_of_the_grammar_has_its_line() -> None:
    named = {word for text in EXPRESSIONS for word in re.findall(r"[A-Za-z_]+\*?\(|;|-|\+", text)}
    operators = ("any(", "not(", "A(", "A*(", "every(", "P(", "P*(", "cron(", ";", "-", "+")
    assert named.issuperset(operators)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_parse(text: str) -> None:
    parse(text)


@pytest.mark.parametrize("text", re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
def test_rulebooks_load(text: str) -> None:
    file = str(Path(__file__).parent / "README.yaml")  # paths are relative to it
    assert load(text, file=file).rules
