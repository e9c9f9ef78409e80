"""The worked examples of semantics 3, among them Snoop's Figure 5, in every context."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rules.model import Context
from rules.unbuilt import EXPRESSIONS
from tests.detector.history import run
from tests.golden.load import Case, cases
from tests.reference.evaluate import canonical


def built(case: Case) -> bool:
    """Whether the case is of signals and of operators that are built."""
    nodes = [node for rule in case.rulebook.rules.values() for node in rule.on.walk()]
    return not any(type(node) in EXPRESSIONS for node in nodes)


@pytest.mark.parametrize("case", [c for c in cases("figure5.txt") if built(c)], ids=str)
@pytest.mark.parametrize("context", Context)
def test_figure_5_in_every_context(case: Case, context: Context) -> None:
    if context not in case.expected:
        pytest.skip("the page says nothing of it")
    rules = {n: replace(r, context=context) for n, r in case.rulebook.rules.items()}
    found = run(replace(case.rulebook, rules=rules), [list(case.history)])
    assert found == canonical(case.expected[context])
