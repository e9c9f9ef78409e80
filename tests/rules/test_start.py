"""Reading a rulebook is quick and needs neither Spark, Arrow nor a database."""

from __future__ import annotations

import subprocess
import sys

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
