"""The conditions that the local evaluator leaves: where it cannot decide rows, Spark would raise on
them, or only Spark can tell. Implements `engine.core.ports.Conditions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from tidegate.engine.core.evaluator.firings import compile_condition
from tidegate.engine.core.evaluator.nodes import RaisingError, UndecidedError
from tidegate.engine.core.values import Answers, Failure, Question
from tidegate.engine.replay.memory.predicates import needs_spark_error


class MemoryConditions:
    """As Spark does: if a question raises on one of its rows, none of its firings has an answer."""

    def hold(self, questions: Sequence[Question]) -> Answers:
        """See `engine.core.ports.Conditions`. Raises EngineError `needs-spark`."""
        return Answers(failed={question.asked: _failure(question) for question in questions})

    def sample(self, text: str, pinned: Mapping[str, int]) -> pa.Scalar | Failure | None:  # noqa: ARG002
        """See `engine.core.ports.Conditions`. Raises EngineError `needs-spark`."""
        raise needs_spark_error("a sample")


def _failure(question: Question) -> Failure:
    asked, what = question.condition, f"the condition of rule {question.rule}"
    known = None
    if not asked.query:
        known = compile_condition(asked.text, question.relation.schema, question.group)
    if known is None:
        raise needs_spark_error(what)
    try:
        known.held(question.relation)
    except RaisingError:
        return Failure(f"the condition at {asked.place} failed: it raises on one of its rows")
    except UndecidedError:
        pass
    raise needs_spark_error(what)
