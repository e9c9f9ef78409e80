"""The stage: a bucket's detections -> its firings, with their conditions decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from engine.evaluate.firings import firings_of
from engine.evaluate.prepare import Prepared, PreparedRule
from engine.ports import Conditions
from engine.values import Detections, Firings, Plan, Question
from rules.errors import EngineError

ATTEMPTS = 3


def evaluate(
    prepared: Prepared, detections: Iterable[Detections], plan: Plan, conditions: Conditions
) -> tuple[Firings, ...]:
    """The firings of every rule that detected something. All conditions are asked together, of the
    versions that the plan pins (G14, G15).

    Raises EngineError `condition-failed`, naming rule and bucket, when it has failed three times.
    """
    firings = [firings_of(plan.rulebook, prepared.rules[d.rule], d) for d in detections if len(d)]
    questions = [
        question
        for of_rule in firings
        if (question := _question(prepared.rules[of_rule.rule], of_rule.relation)) is not None
    ]
    if not questions:
        return tuple(firings)
    held = _ask(conditions, questions, plan)
    asked = {question.rule for question in questions}
    return tuple(_decided(f, held) if f.rule in asked else f for f in firings)


def _question(prepared: PreparedRule, relation: pa.Table) -> Question | None:
    condition, reading = prepared.rule.condition, prepared.condition
    if condition is None or reading is None:
        return None
    group = tuple(name for name in prepared.shape.per_firing if name in reading.columns)
    read = {"firing_id", *reading.columns}
    seen = relation.select(
        [
            name
            for name in relation.column_names
            if name in read or any(column.startswith(f"{name}.") for column in read)
        ]
    )
    return Question(prepared.rule.name, condition, group, reading.tables, seen)


def _ask(conditions: Conditions, questions: Sequence[Question], plan: Plan) -> frozenset[str]:
    for attempt in range(ATTEMPTS):
        try:
            return conditions.hold(questions, plan.pinned)
        except EngineError as error:
            if attempt == ATTEMPTS - 1:
                message = f"{error.message} (bucket {plan.bucket}, {ATTEMPTS} attempts)"
                raise EngineError(error.code, message, error.hint) from error
    raise AssertionError


def _decided(firings: Firings, held: frozenset[str]) -> Firings:
    holds = pc.is_in(firings.hex_ids(), pa.array(sorted(held), pa.string()))
    column = pc.if_else(holds, "held", "failed")
    table = firings.firings
    at = table.column_names.index("condition")
    return replace(firings, firings=table.set_column(at, "condition", column))
