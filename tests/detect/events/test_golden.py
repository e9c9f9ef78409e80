"""The worked examples, in every context that they say something of, however they are cut."""

from __future__ import annotations

import pytest

from tests.golden.compare import agree
from tests.golden.load import Case, cases
from tests.reference.cuts import everywhere
from tests.reference.examples import in_turn
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


CASES = [pytest.param(*numbered, id=str(numbered[1])) for numbered in enumerate(cases())]


@pytest.mark.parametrize(("number", "case"), [c for c in CASES if built(c.values[1])])
def test_worked_example(number: int, case: Case) -> None:
    history = list(case.history)
    for place, context in enumerate(case.expected):
        book = case.in_context(context)
        for cut in in_turn([(), *everywhere(book, history)], number + place):
            agree(run(book, history, cut, case.until), case, context, f"in buckets to {cut}")
