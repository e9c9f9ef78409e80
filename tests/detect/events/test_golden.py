"""The worked examples, in every context that they say something of, however they are cut."""

from __future__ import annotations

import pytest

from tests.golden.compare import agree
from tests.golden.load import Case, cases
from tests.reference.cuts import everywhere
from tests.support.history import run
from tidegate.rules.expressions.nodes import BeginOf, EndOf, Name
from tidegate.rules.model import TableEvent


def built(case: Case) -> bool:
    """Whether the case is of what the detector has: no rules as events, edges; and of what the
    harness has: parameters are integers."""
    book = case.rulebook
    nodes = [node for rule in book.rules.values() for node in rule.pattern.on.walk()]
    return not (
        any(isinstance(n, BeginOf | EndOf) for n in nodes)
        or any(isinstance(n, Name) and n.name in book.rules for n in nodes)
        or any(not isinstance(v, int | None) for _, _, f in case.history for v in f.values())
        or any(isinstance(v, bool) for _, _, f in case.history for v in f.values())
        or any(isinstance(event, TableEvent) for event in book.events.values())
    )


@pytest.mark.parametrize("case", [c for c in cases() if built(c)], ids=str)
def test_worked_example(case: Case) -> None:
    history = list(case.history)
    for context in case.expected:
        book = case.in_context(context)
        agree(run(book, history, until=case.until), case, context, "in one bucket")
        for cut in everywhere(book, history):
            agree(run(book, history, cut, case.until), case, context, "in many buckets")
