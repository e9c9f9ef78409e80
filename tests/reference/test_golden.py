"""The reference gives what the worked examples say."""

from __future__ import annotations

import pytest

from tests.golden.compare import agree
from tests.golden.load import Case, cases
from tests.reference.evaluate import reference


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_worked_example(case: Case) -> None:
    assert case.expected
    for context in case.expected:
        found = reference(case.rulebook, case.history, until=case.until, context=context)
        agree(found, case, context)
