"""The reference gives what the worked examples say."""

from __future__ import annotations

import pytest

from tests.golden.load import Case, cases
from tests.reference.evaluate import canonical, reference


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_worked_example(case: Case) -> None:
    assert case.expected
    for context, expected in case.expected.items():
        found = reference(case.rulebook, case.history, until=case.until, context=context)
        assert found == canonical(expected), context
