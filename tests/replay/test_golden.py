"""The worked examples through `simulate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.compare import agree
from tests.golden.load import Case, cases
from tests.reference.evaluate import canonical
from tests.replay.traces import simulated
from tidegate.rules.model import Context

EXAMPLES = [
    pytest.param(case, context, id=f"{case} {context or ''}")
    for case in cases()
    for context in case.expected
]


@pytest.mark.parametrize(("case", "context"), EXAMPLES)
def test_worked_example(case: Case, context: Context | None, tmp_path: Path) -> None:
    book = case.in_context(context)
    found = [simulated(book, case.history, tmp_path, bucket, case.until) for bucket in (None, 1, 2)]
    for bucket, lines in zip((None, 1, 2), found, strict=True):
        agree(canonical(lines), case, context, f"in buckets of {bucket}")
    assert found[0] == found[1] == found[2]
