"""The worked examples through `simulate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.compare import agree
from tests.golden.load import Case, cases
from tests.reference.evaluate import canonical
from tests.reference.examples import in_turn
from tests.replay.traces import simulated
from tidegate.rules.model import Context

EXAMPLES = [(case, context) for case in cases() for context in case.expected]
ONE_IN = 3  # in the short suite: the detector runs all of them there
NUMBERED = [
    pytest.param(
        number,
        case,
        context,
        id=f"{case} {context or ''}",
        marks=pytest.mark.long if number % ONE_IN else [],
    )
    for number, (case, context) in enumerate(EXAMPLES)
]


@pytest.mark.parametrize(("number", "case", "context"), NUMBERED)
def test_worked_example(number: int, case: Case, context: Context | None, tmp_path: Path) -> None:
    book = case.in_context(context)
    found = []
    for bucket in in_turn((None, 1, 2), number // ONE_IN):
        found.append(simulated(book, case.history, tmp_path, bucket, case.until))
        agree(canonical(found[-1]), case, context, f"in buckets of {bucket}")
    assert all(lines == found[0] for lines in found)
