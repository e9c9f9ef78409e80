"""The test files of the examples and of the cookbook, and which of their cases are to fail."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tidegate import rules
from tidegate.engine.replay.cases.driver import CaseResult, Driver
from tidegate.engine.replay.cases.model import Case, CaseFile
from tidegate.engine.replay.cases.reader import read_cases
from tidegate.engine.replay.memory.worlds import MemoryWorlds

EXAMPLES = Path(rules.__file__).parent / "examples"
FILES = sorted(EXAMPLES.rglob("*.test.yaml"))
MISSING: dict[str, str] = {}
"""By name of a case that the language cannot say yet: the form that it is without."""


@cache
def read(file: Path) -> CaseFile:
    return read_cases(file)


@cache
def driver(file: Path) -> Driver:
    """Runs the cases of a file without Spark."""
    cases = read(file)
    worlds = MemoryWorlds(cases.book, cases.schemas, cases.defaults)
    return Driver(cases, lambda _: worlds.world(), strict=False)


def every_case() -> list[object]:
    """A parameter for each case of each file, of which the first is in the short suite."""
    return [
        _parameter(file, case, [pytest.mark.long] if number else [])
        for file in FILES
        for number, case in enumerate(read(file).cases)
    ]


def _parameter(file: Path, case: Case, marks: list[pytest.MarkDecorator]) -> object:
    reason = MISSING.get(case.name)
    if reason:
        marks = [*marks, pytest.mark.xfail(strict=True, reason=reason)]
    return pytest.param(file, case, id=f"{file.name.split('.')[0]}: {case.name}", marks=marks)


def told(result: CaseResult) -> str:
    """What a failed case shows."""
    lines = [f"{one.path}: expected {one.expected}, got {one.got}" for one in result.differences]
    return "\n".join([*lines, *result.beside, *filter(None, [result.error])])
