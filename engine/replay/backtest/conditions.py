"""Conditions of a backtest that skips queries: each is taken for true, and marked as skipped.

Example: `if: {sql: SELECT ..}` would be asked of a version of 40 days ago, which VACUUM took. With
`--conditions skip` the firings are shown with the condition `skipped`. Expressions are still asked:
they read nothing but the firing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.ports import Conditions
from tidegate.engine.core.values import Answers, Failure, Firings, Question
from tidegate.rules.model import Rulebook

SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Skipping:
    """Implements `engine.core.ports.Conditions` by another one, which is not asked for queries."""

    conditions: Conditions

    def hold(self, questions: Sequence[Question]) -> Answers:
        """See `engine.core.ports.Conditions`."""
        queries = [one for one in questions if one.condition.query]
        ids = [pc.unique(one.relation["firing_id"]).to_pylist() for one in queries]
        said = Answers(held=frozenset[str]().union(*ids))
        left = [one for one in questions if not one.condition.query]
        return said.also(self.conditions.hold(left)) if left else said

    def sample(self, text: str, pinned: Mapping[str, int]) -> pa.Scalar | Failure | None:
        """See `engine.core.ports.Conditions`."""
        return self.conditions.sample(text, pinned)


def queries_of(book: Rulebook) -> frozenset[str]:
    """The rules whose condition is a query."""
    return frozenset(
        rule.name
        for rule in book.rules.values()
        if rule.condition is not None and rule.condition.query
    )


def with_skipped(firings: Firings, queries: Collection[str]) -> Firings:
    """The firings of a rule whose query was skipped, said so."""
    if firings.rule not in queries:
        return firings
    outcomes = pa.array([SKIPPED] * len(firings), pa.string())
    return firings.with_condition(outcomes)
