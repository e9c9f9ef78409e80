"""The worked examples through `simulate`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.golden.load import Case, cases
from tests.reference.evaluate import canonical
from tests.replay.traces import simulated
from tidegate.rules.model import Context, Rulebook


def in_context(book: Rulebook, context: Context | None) -> Rulebook:
    if context is None:
        return book
    rules = {
        name: replace(rule, context=context, selection=None) for name, rule in book.rules.items()
    }
    return replace(book, rules=rules)


EXAMPLES = [
    pytest.param(case, context, id=f"{case} {context or ''}")
    for case in cases()
    for context in case.expected
]


@pytest.mark.parametrize(("case", "context"), EXAMPLES)
def test_worked_example(case: Case, context: Context | None, tmp_path: Path) -> None:
    book = in_context(case.rulebook, context)
    found = [simulated(book, case.history, tmp_path, bucket, case.until) for bucket in (None, 1, 2)]
    assert found[0] == found[1] == found[2]
    assert canonical(found[0]) == canonical(case.expected[context])
