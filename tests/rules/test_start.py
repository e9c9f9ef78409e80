"""Reading a rulebook is quick and needs neither Spark, Arrow nor a database."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources

import pytest

from tidegate.rules.expressions import grammar

ENGINE = "tidegate.engine"
HEAVY = ("pyspark", "delta", "pyarrow", "pandas", "numpy", "numba", "sqlalchemy", ENGINE)


def printed_by(code: str) -> list[str]:
    """The words that a process of its own prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def test_loading_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from tidegate import rules\n"
        "rules.load('rulebook: b\\nevents: {a: {signal: {}}}\\nrules: {r: {on: a ; a}}\\n')\n"
        "print(*sys.modules)\n"
    )
    found = printed_by(code)
    assert "tidegate.rules.expressions.parser" in found
    assert not set(HEAVY) & set(found)


def test_the_model_alone_needs_no_parser() -> None:
    code = "import sys, tidegate.rules.model\nprint(*sys.modules)\n"
    found = printed_by(code)
    assert "tidegate.rules.model" in found
    assert not {"lark", "yaml"} & set(found)


def test_validate_starts_without_arrow_and_numpy() -> None:
    code = "import sys, tidegate.engine.cli.main, tidegate.rules.loader\nprint(*sys.modules)\n"
    found = printed_by(code)
    assert "tidegate.engine.cli.main" in found
    assert not {name for name in HEAVY if name != ENGINE} & set(found)


def test_a_part_of_a_rulebook_needs_neither_checks_nor_sql_nor_the_language_of_scripts() -> None:
    text = "rulebook: b\nevents: {a: {signal: {n: int}}}\nrules: {r: {on: a ; a, if: n > 1}}\n"
    code = (
        "import sys\n"
        "from tidegate.rules.loader import composed, part\n"
        f"book = part(composed({text!r}, {{}}, None, {{}}, {{}}), 'r')\n"
        "assert [*book.rules] == ['r']\n"
        "print(*sys.modules)\n"
    )
    found = printed_by(code)
    assert "tidegate.rules.form.shape" in found
    heavy = ("tidegate.rules.checks", "tidegate.rules.eventscript.tree", "sqlglot", *HEAVY)
    assert not {name for name in found if name.startswith(heavy)}


def test_the_table_of_the_grammar_is_made_of_it() -> None:
    """Else each process makes one. `python -m tidegate.rules.expressions.grammar` writes it."""
    made = json.loads(resources.files(grammar.PACKAGE).joinpath("grammar.json").read_text())
    assert made["of"] == grammar.made_of()


def test_a_table_of_another_grammar_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    own = grammar.expression_grammar()
    monkeypatch.setattr(grammar, "made_of", lambda: "another")
    anew = grammar.expression_grammar.__wrapped__()
    assert anew is grammar.grammar(grammar.PACKAGE, **grammar.OPTIONS)
    for text in ("a ; b within 5 min without c", "x: (a) and any(3, b*)", "A(a, b or c, d[2])"):
        assert own.parse(text) == anew.parse(text)
