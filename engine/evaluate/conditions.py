"""Conditions without a Spark job: expressions of the closed list are answered on Arrow (G30)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.engine.core.evaluator.firings import compile_condition
from tidegate.engine.core.evaluator.nodes import UndecidedError
from tidegate.engine.core.ports import Conditions
from tidegate.engine.core.relation_files import RelationFiles
from tidegate.engine.core.text.logs import ASKING, go_on
from tidegate.engine.core.values import Answers, Failure, Question


@dataclass(frozen=True, slots=True)
class LocalConditions:
    """Wraps `engine.core.ports.Conditions`, and asks it only what Arrow cannot decide: queries,
    expressions outside the list, firings on whose rows Spark may raise, and those whose rows lie in
    files."""

    conditions: Conditions

    def hold(self, questions: Sequence[Question]) -> Answers:
        """See `engine.core.ports.Conditions`."""
        said, left = Answers(), []
        for question in questions:
            held = _held(question)
            if held is None:
                left.append(question)
            else:
                go_on(ASKING)
                said = said.also(_answers(question, held))
        return said.also(self.conditions.hold(left)) if left else said

    def sample(self, text: str, pinned: Mapping[str, int]) -> pa.Scalar | Failure | None:
        """See `engine.core.ports.Conditions`."""
        return self.conditions.sample(text, pinned)


def _held(question: Question) -> frozenset[str] | None:
    """The firings of which an expression is true; None if Spark must say."""
    if question.condition.query or isinstance(question.relation, RelationFiles):
        return None
    schema = question.relation.schema
    condition = compile_condition(question.condition.text, schema, question.group)
    try:
        return None if condition is None else condition.held(question.relation)
    except UndecidedError:
        return None


def _answers(question: Question, held: frozenset[str]) -> Answers:
    match question.asks:
        case "fire":
            return Answers(fires=held)
        case "rearm":
            return Answers(rearms=held)
    return Answers(held)
