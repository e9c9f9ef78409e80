"""The stage: a bucket's detections -> its firings, with their conditions decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.evaluate.asof import AsOf
from tidegate.engine.evaluate.firings import firings_of
from tidegate.engine.evaluate.prepare import Prepared, PreparedRule
from tidegate.engine.evaluate.samples import Sampler
from tidegate.engine.ports import Conditions
from tidegate.engine.values import Detections, Failure, Firings, Plan, Question
from tidegate.rules.model import Coupling

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
    as_of: AsOf,
    sampler: Sampler | None = None,
) -> Evaluated:
    """The firings of every rule that detected something. All conditions but detached ones are asked
    together (G14, G15): deferred ones of the versions that the plan pins, immediate ones of those
    as of each firing's detection. Those that fail are asked again, three times in all. What a
    rule's ticks sample is taken first: a sample that fails is as a condition that does."""
    firings: list[Firings] = []
    unsampled: dict[str, Failure] = {}
    for found in detections:
        if sampler is not None and prepared.rules[found.rule].samples:
            found, why = sampler.with_samples(found)
            unsampled |= {found.rule: why} if why else {}
        if len(found):
            firings.append(firings_of(plan.rulebook, prepared.rules[found.rule], found))
    asked = {
        of_rule.rule: _questions(prepared.rules[of_rule.rule], of_rule, plan, as_of)
        for of_rule in firings
        if of_rule.rule not in unsampled and not prepared.rules[of_rule.rule].rule.asks_later
    }
    held, failed = _ask([q for questions in asked.values() for q in questions], conditions)
    told = {rule for rule, questions in asked.items() if questions} - failed.keys()
    decisions = tuple(decided(f, held) if f.rule in told else f for f in firings)
    return Evaluated(decisions, {**failed, **unsampled})


def _ask(
    questions: Sequence[Question], conditions: Conditions
) -> tuple[frozenset[str], dict[str, Failure]]:
    """The ids of the firings that hold; by rule, why its condition could not be asked."""
    held: frozenset[str] = frozenset()
    failed: dict[str, Failure] = {}
    left = list(questions)
    for attempt in range(1, ATTEMPTS + 1 if left else 1):
        answers = conditions.hold(left)
        held |= answers.held
        failed = {rule: why for rule, why in failed.items() if why.lasting}
        failed |= {rule: replace(why, attempts=attempt) for rule, why in answers.failed.items()}
        left = [q for q in questions if q.rule in failed and not failed[q.rule].lasting]
        if not left:
            break
    return held, failed


def _questions(prepared: PreparedRule, firings: Firings, plan: Plan, as_of: AsOf) -> list[Question]:
    """A rule's condition, asked once for all firings that see the same versions of its tables."""
    whole = question_of(prepared, firings.relation)
    if whole is None:
        return []
    if prepared.rule.condition_coupling is not Coupling.IMMEDIATE or not whole.tables:
        return [replace(whole, versions=plan.pinned)]
    tables = sorted(whole.tables)
    instants = firings.firings["detected_at"].cast(pa.int64()).to_numpy()
    ids = firings.hex_ids()
    seen: dict[tuple[int | None, ...], list[int]] = {}
    for instant in np.unique(instants).tolist():
        versions = tuple(as_of.version(table, instant) for table in tables)
        seen.setdefault(versions, []).append(instant)
    questions = []
    for versions, times in seen.items():
        some = ids.filter(pa.array(np.isin(instants, times)))
        rows = whole.relation.filter(pc.is_in(whole.relation["firing_id"], some))
        pinned = {t: v for t, v in zip(tables, versions, strict=True) if v is not None}
        questions.append(replace(whole, relation=rows, versions=pinned))
    return questions


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
    return Question(
        prepared.rule.name, condition, group, reading.tables, seen, transitions=reading.transitions
    )


def decided(firings: Firings, held: frozenset[str]) -> Firings:
    holds = pc.is_in(firings.hex_ids(), pa.array(sorted(held), pa.string()))
    column = pc.if_else(holds, "held", "failed")
    table = firings.firings
    at = table.column_names.index("condition")
    return replace(firings, firings=table.set_column(at, "condition", column))
