"""The worked examples, as far as the detector goes, through `simulate`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.detector.detector import Detector
from rules.errors import EngineError
from rules.model import Context, Rulebook, SignalEvent
from tests.golden.load import Case, cases
from tests.reference.evaluate import canonical
from tests.replay.traces import simulated


def in_context(book: Rulebook, context: Context | None) -> Rulebook:
    if context is None:
        return book
    rules = {name: replace(rule, context=context) for name, rule in book.rules.items()}
    return replace(book, rules=rules)


def detectable(book: Rulebook) -> bool:
    if not all(isinstance(event, SignalEvent) for event in book.events.values()):
        return False
    try:
        Detector(book, dict.fromkeys(book.rules, 0))
    except EngineError:
        return False
    return not any(rule.selection for rule in book.rules.values())


EXAMPLES = [
    pytest.param(case, context, id=f"{case} {context or ''}")
    for case in cases()
    for context in case.expected
    if detectable(in_context(case.rulebook, context))
]


@pytest.mark.parametrize(("case", "context"), EXAMPLES)
def test_worked_example(case: Case, context: Context | None, tmp_path: Path) -> None:
    book = in_context(case.rulebook, context)
    found = [simulated(book, case.history, tmp_path, bucket, case.until) for bucket in (None, 1, 2)]
    assert found[0] == found[1] == found[2]
    assert canonical(found[0]) == canonical(case.expected[context])
