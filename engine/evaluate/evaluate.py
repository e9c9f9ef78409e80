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
from tidegate.engine.evaluate.silent import without_silent
from tidegate.engine.ports import Conditions
from tidegate.engine.values import (
    Answers,
    Detections,
    Failure,
    Firings,
    Plan,
    Question,
    Reading,
)
from tidegate.rules.model import Condition, Coupling, Rule

ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The firings of a bucket, and what was said of them; those of a rule that could not be asked
    are dead (G13)."""

    firings: tuple[Firings, ...]
    answers: Answers

    @property
    def failed(self) -> Mapping[str, Failure]:
        return self.answers.failed


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
            rule = prepared.rules[found.rule]
            fired = without_silent(firings_of(plan.rulebook, rule, found), rule.silent)
            if len(fired):
                firings.append(fired)
    asked = {
        of_rule.rule: _questions(prepared.rules[of_rule.rule], of_rule, plan, as_of)
        for of_rule in firings
        if of_rule.rule not in unsampled and not prepared.rules[of_rule.rule].rule.asks_later
    }
    answers = _ask([q for questions in asked.values() for q in questions], conditions)
    told = asked.keys() - answers.failed.keys()
    decisions = tuple(
        decided(f, prepared.rules[f.rule].rule, answers) if f.rule in told else f for f in firings
    )
    return Evaluated(decisions, answers.also(Answers(failed=unsampled)))


def _ask(questions: Sequence[Question], conditions: Conditions) -> Answers:
    """What is said of the firings; by rule, why it could not be asked."""
    said = Answers()
    failed: dict[str, Failure] = {}
    left = list(questions)
    for attempt in range(1, ATTEMPTS + 1 if left else 1):
        answers = conditions.hold(left)
        said = said.also(replace(answers, failed={}))
        failed = {rule: why for rule, why in failed.items() if why.lasting}
        failed |= {rule: replace(why, attempts=attempt) for rule, why in answers.failed.items()}
        left = [q for q in questions if q.rule in failed and not failed[q.rule].lasting]
        if not left:
            break
    return replace(said, failed=failed)


def _questions(prepared: PreparedRule, firings: Firings, plan: Plan, as_of: AsOf) -> list[Question]:
    """What is asked of a rule's firings: each once for all that see the same versions of its
    tables."""
    found = []
    for question in questions_of(prepared, firings.relation):
        if prepared.rule.condition_coupling is Coupling.IMMEDIATE and question.tables:
            found += _at_instants(question, firings, as_of)
        else:
            found.append(replace(question, versions=plan.pinned))
    return found


def _at_instants(whole: Question, firings: Firings, as_of: AsOf) -> list[Question]:
    """A question in parts, by the versions that each firing sees."""
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


def questions_of(prepared: PreparedRule, relation: pa.Table) -> list[Question]:
    """A rule's condition over its parameter relation, and its hysteresis, as far as it has them."""
    rule, found = prepared.rule, []
    if rule.condition is not None and prepared.condition is not None:
        found.append(_question(prepared, rule.condition, prepared.condition, relation))
    if prepared.levels and rule.damping is not None and rule.damping.hysteresis is not None:
        levels = rule.damping.hysteresis
        asked = (("fire", levels.fire), ("rearm", levels.rearm))
        for (name, condition), reading in zip(asked, prepared.levels, strict=True):
            found.append(replace(_question(prepared, condition, reading, relation), asks=name))
    return found


def _question(
    prepared: PreparedRule, condition: Condition, reading: Reading, relation: pa.Table
) -> Question:
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


def decided(firings: Firings, rule: Rule, answers: Answers) -> Firings:
    """The firings of a rule with what its condition, if it has one, said of them."""
    if rule.condition is None:
        return firings
    holds = pc.is_in(firings.hex_ids(), pa.array(sorted(answers.held), pa.string()))
    column = pc.if_else(holds, "held", "failed")
    table = firings.firings
    at = table.column_names.index("condition")
    return replace(firings, firings=table.set_column(at, "condition", column))
