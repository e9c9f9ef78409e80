"""The stage: a bucket's detections -> its firings, with their conditions decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.evaluate.firings import firings_of
from tidegate.engine.evaluate.prepare import Prepared, PreparedRule
from tidegate.engine.evaluate.samples import Sampler
from tidegate.engine.ports import Conditions
from tidegate.engine.values import Detections, Failure, Firings, Plan, Question

ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The firings of a bucket, and by rule why its condition could not be asked: these firings are
    dead (G13)."""

    firings: tuple[Firings, ...]
    failed: Mapping[str, Failure]


def evaluate(
    prepared: Prepared,
    detections: Iterable[Detections],
    plan: Plan,
    conditions: Conditions,
    sampler: Sampler | None = None,
) -> Evaluated:
    """The firings of every rule that detected something. All conditions are asked together, of the
    versions that the plan pins (G14, G15); those that fail are asked again, three times in all.
    What a rule's ticks sample is taken first: a sample that fails is as a condition that does."""
    firings: list[Firings] = []
    unsampled: dict[str, Failure] = {}
    for found in detections:
        if sampler is not None and prepared.rules[found.rule].samples:
            found, why = sampler.with_samples(found)
            unsampled |= {found.rule: why} if why else {}
        if len(found):
            firings.append(firings_of(plan.rulebook, prepared.rules[found.rule], found))
    asked = {
        question.rule: question
        for of_rule in firings
        if of_rule.rule not in unsampled
        and (question := question_of(prepared.rules[of_rule.rule], of_rule.relation)) is not None
    }
    held: frozenset[str] = frozenset()
    failed: dict[str, Failure] = {}
    left = list(asked.values())
    for attempt in range(1, ATTEMPTS + 1 if asked else 1):
        answers = conditions.hold(left, plan.pinned)
        held |= answers.held
        failed = {rule: why for rule, why in failed.items() if why.lasting}
        failed |= {rule: replace(why, attempts=attempt) for rule, why in answers.failed.items()}
        left = [asked[rule] for rule, why in failed.items() if not why.lasting]
        if not left:
            break
    told = asked.keys() - failed.keys()
    decisions = tuple(decided(f, held) if f.rule in told else f for f in firings)
    return Evaluated(decisions, {**failed, **unsampled})


def question_of(prepared: PreparedRule, relation: pa.Table) -> Question | None:
    """A rule's condition over its parameter relation, None if it has none."""
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


def decided(firings: Firings, held: frozenset[str]) -> Firings:
    holds = pc.is_in(firings.hex_ids(), pa.array(sorted(held), pa.string()))
    column = pc.if_else(holds, "held", "failed")
    table = firings.firings
    at = table.column_names.index("condition")
    return replace(firings, firings=table.set_column(at, "condition", column))
