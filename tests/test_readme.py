"""What README shows of the language is the language."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from tidegate import parse
from tidegate.engine.replay.simulate import simulate
from tidegate.rules import load
from tidegate.rules.checks.gaps import SIMULATED

TEXT = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
EXPRESSIONS = re.findall(r"^\| `([^`]+)`(?: \(t\))? \| (?!.*\|.*\|)", TEXT, re.MULTILINE)


def test_every_operator_of_the_grammar_has_its_line() -> None:
    words = re.compile(r"[A-Za-z_]+\*?\(|;|-|\+|&|then")
    named = {word for text in EXPRESSIONS for word in words.findall(text)}
    operators = (
        "all(",
        "any(",
        "not(",
        "A(",
        "A*(",
        "every(",
        "P(",
        "P*(",
        "cron(",
        *";-+&",
        "then",
    )
    assert named.issuperset(operators)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_parse(text: str) -> None:
    parse(text)


@pytest.mark.parametrize("text", re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL))
def test_rulebooks_load(text: str) -> None:
    file = str(Path(__file__).parent / "README.yaml")  # paths are relative to it
    assert load(text, file=file, features=SIMULATED).rules


def test_the_trace_detects_what_is_said_of_it(tmp_path: Path) -> None:
    (trace,) = re.findall(r"```jsonl\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "day.jsonl").write_text(trace)
    (tmp_path / "bank.yaml").write_text(
        next(book for book in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL) if "bank" in book)
    )
    out = io.BytesIO()
    simulate(tmp_path / "bank.yaml", tmp_path / "day.jsonl", out=out)
    (found,) = map(json.loads, out.getvalue().splitlines())
    assert (found["rule"], found["key"]) == ("in_and_out", {"account_id": 7})
    assert (found["start"], found["end"]) == (1, 4)
    assert "here one:\n`in_and_out` of account 7, from 1 to 4." in TEXT
