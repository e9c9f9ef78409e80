"""A mutant in any line of an example's rulebook is found by the example's own tests.

`python -m tests.examples.mutations --spark` prints which of them finds it, and runs those that need
Spark too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.cases import FILES
from tests.examples.equivalent import EQUIVALENT
from tests.examples.mutants import mutants
from tests.examples.mutations import line, sources, verdicts


@pytest.fixture
def silent() -> Iterator[None]:
    """What engines say of mutants is not kept."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.long
@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_mutant_survives_the_cases_that_need_no_spark(file: Path) -> None:
    found = list(verdicts(file))
    print("\n".join(map(line, found)))
    assert [line(one) for one in found if one.kind == "survived"] == []
    assert sum(one.kind == "found" for one in found) > 0 or any(one.left for one in found)


def test_what_is_equivalent_is_a_mutant() -> None:
    known = {
        (source.name, mutant.after.strip() or mutant.before.strip())
        for file in FILES
        for source in sources(file)
        for mutant in mutants(source.read_text())
    }
    assert set(EQUIVALENT) <= known


def test_a_line_and_its_mutants() -> None:
    afters = {mutant.after.strip() for mutant in mutants("    on: (a ; b) within 5 min - c")}
    assert afters == {
        "on: (a and b) within 5 min - c",
        "on: (a ; b) within 5 min",
        "on: (a ; b) within 6 min - c",
        "on: (a ; b) within 4 min - c",
    }
