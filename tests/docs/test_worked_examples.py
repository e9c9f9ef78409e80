"""The worked examples of the pages are true: of the reference, and of the detector."""

from __future__ import annotations

import pytest

from tests.detect.events.test_golden import built
from tests.docs.pages import blocks
from tests.golden.compare import agree
from tests.golden.load import Case, read_all
from tests.reference.evaluate import reference
from tests.support.history import run
from tidegate.engine.explain.sentences import Sentences

CASES = [case for place, text in blocks("golden") for case in read_all(text, place.split(":")[0])]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_worked_example(case: Case) -> None:
    assert case.expected
    rule = case.rulebook.rules.get("r")
    for context, says in case.says.items():
        assert rule is not None
        assert Sentences(rule, case.rulebook.rules).choice(context or rule.pattern.context) == says
    for context in case.expected:
        agree(
            reference(case.rulebook, case.history, until=case.until, context=context), case, context
        )
        if built(case):
            book = case.in_context(context)
            agree(run(book, list(case.history), until=case.until), case, context, "by the detector")
