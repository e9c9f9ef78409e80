"""The stage `evaluate`: makes firings of a bucket's detections (id, depth, parameter relation: G6,
G22), and asks their conditions.

Example: a rule with `if: amount > 100` has three detections in a bucket. They become three firings
with one question. The answer holds for two of them: their condition is `held`, the third `failed`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.columns.ids import as_binary, as_hex, constituent_ids, firing_ids
from tidegate.engine.core.parameters import INSTANT
from tidegate.engine.core.ports import Conditions
from tidegate.engine.core.relation_files import Relation
from tidegate.engine.core.text.logs import ASKING, begin
from tidegate.engine.core.values import (
    Answers,
    Detections,
    Failure,
    Firings,
    Int64,
    Plan,
    Question,
    QuestionKey,
    Reading,
    Unasked,
)
from tidegate.engine.evaluate.disabled_keys import without_silent
from tidegate.engine.evaluate.relation import cast_to, constituent_sources, parameter_relation
from tidegate.engine.evaluate.requirements import Prepared, PreparedRule
from tidegate.engine.evaluate.samples import ATTEMPTS, AsOf, Sampler
from tidegate.rules.model import Condition, Coupling, Rule


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The firings of a bucket, and the answers of conditions. `unasked`: by rule, the firings whose
    question failed, with the reason. They are dead (G13)."""

    firings: tuple[Firings, ...]
    answers: Answers
    unasked: Mapping[str, Sequence[Unasked]]


def evaluate(
    prepared: Prepared,
    detections: Iterable[Detections | Firings],
    plan: Plan,
    conditions: Conditions,
    as_of: AsOf,
    sampler: Sampler | None = None,
) -> Evaluated:
    """The firings of every rule that detected something. `detections`: of some rules the firings
    are made already, where they were detected (`apart.py`). Samples are taken first. Then all
    conditions but detached ones are asked together (G14, G15). Deferred ones read the versions that
    the plan pins, immediate ones the versions at each firing's detection.

    A question that fails is asked up to three times. If it fails for good, only the firings that
    see the same versions are dead (G25). A failed sample counts as a failed condition."""
    firings: list[Firings] = []
    unasked: dict[str, list[Unasked]] = {}
    for found in detections:
        if not len(found):
            continue
        rule = prepared.rules[found.rule]
        unsampled: Sequence[tuple[Int64, Failure]] = ()
        if isinstance(found, Firings):
            fired = found
        else:
            if sampler is not None and rule.samples:
                found, unsampled = sampler.with_samples(found)
            fired = firings_of(plan.rulebook, rule, found)
        unasked[found.rule] = [
            Unasked(tuple(fired.hex_ids().take(pa.array(some)).to_pylist()), why)
            for some, why in unsampled
        ]
        fired = without_silent(fired, rule.silent)
        if len(fired):
            firings.append(fired)
    questions = [
        question
        for fired in firings
        if not prepared.rules[fired.rule].rule.asks_later
        for question in _questions(
            prepared.rules[fired.rule], _but(fired, unasked[fired.rule]), plan, as_of
        )
    ]
    answers = _ask(questions, conditions)
    for question in questions:
        if why := answers.failed.get(question.asked):
            ids = question.firing_ids.to_pylist()
            unasked[question.rule].append(Unasked(tuple(ids), why))
    decisions = (
        fired if rule.asks_later else decided(fired, rule, answers)
        for fired, rule in ((fired, prepared.rules[fired.rule].rule) for fired in firings)
    )
    return _with_dead(decisions, answers, unasked)


def _but(firings: Firings, unasked: Iterable[Unasked]) -> Firings:
    """The firings that are not in `unasked`."""
    dead = [one for some in unasked for one in some.firing_ids]
    if not dead:
        return firings
    return firings.some(pc.invert(pc.is_in(firings.hex_ids(), pa.array(dead, pa.string()))))


def _with_dead(
    firings: Iterable[Firings], answers: Answers, unasked: Mapping[str, Sequence[Unasked]]
) -> Evaluated:
    """The firings, with dead ones marked. In the result's `unasked` each dead firing comes once,
    for its first reason."""
    marked: list[Firings] = []
    kept: dict[str, list[Unasked]] = {}
    for fired in firings:
        if unasked[fired.rule]:
            ids = fired.hex_ids()
            left = set(ids.to_pylist())
            for one in unasked[fired.rule]:
                if own := tuple(i for i in one.firing_ids if i in left):
                    left.difference_update(own)
                    kept.setdefault(fired.rule, []).append(replace(one, firing_ids=own))
        if fired.rule in kept:
            alive = pc.is_in(ids, pa.array(sorted(left), pa.string()))
            outcomes = pc.if_else(alive, fired.firings["condition"], "dead")
            fired = fired.with_condition(outcomes)
        marked.append(fired)
    return Evaluated(tuple(marked), answers, kept)


def _ask(questions: Sequence[Question], conditions: Conditions) -> Answers:
    """The answers to questions. Those that fail are asked again, up to ATTEMPTS times in all."""
    said = Answers()
    failed: dict[QuestionKey, Failure] = {}
    left = list(questions)
    for attempt in range(1, ATTEMPTS + 1 if left else 1):
        begin(ASKING, len(left))
        answers = conditions.hold(left)
        said = said.also(replace(answers, failed={}))
        failed = {asked: why for asked, why in failed.items() if why.lasting}
        failed |= {asked: replace(why, attempts=attempt) for asked, why in answers.failed.items()}
        left = [q for q in questions if q.asked in failed and not failed[q.asked].lasting]
        if not left:
            break
    return replace(said, failed=failed)


def _questions(prepared: PreparedRule, firings: Firings, plan: Plan, as_of: AsOf) -> list[Question]:
    """The questions for a rule's firings. Firings that see the same versions share a question."""
    found = []
    for question in questions_of(prepared, firings.relation) if len(firings) else ():
        if prepared.rule.condition_coupling is Coupling.IMMEDIATE and question.tables:
            found += _at_instants(question, firings, as_of)
        else:
            found.append(replace(question, versions=plan.pinned))
    return found


def _at_instants(whole: Question, firings: Firings, as_of: AsOf) -> list[Question]:
    """A question, split by the versions that firings see at their detection.

    Example: firings at 1, 2 and 9, a commit to the table at 5: one question for the first two, one
    for the third."""
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
        pinned = {t: v for t, v in zip(tables, versions, strict=True) if v is not None}
        questions.append(whole.of(some, pinned))
    return questions


def questions_of(prepared: PreparedRule, relation: Relation) -> list[Question]:
    """The questions of a rule over its relation: its condition, and the two of its hysteresis."""
    return [
        _question(prepared, asks, condition, reading, relation)
        for asks, (condition, reading) in prepared.conditions.items()
    ]


def _question(
    prepared: PreparedRule, asks: str, condition: Condition, reading: Reading, relation: Relation
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
        prepared.rule.name,
        condition,
        group,
        reading.tables,
        seen,
        transitions=reading.transitions,
        asks=asks,
    )


def decided(firings: Firings, rule: Rule, answers: Answers) -> Firings:
    """The firings of a rule with the outcome of its condition; `none` if it has none."""
    if rule.condition is None:
        return firings.with_condition(pa.repeat("none", len(firings)))
    holds = pc.is_in(firings.hex_ids(), pa.array(sorted(answers.held), pa.string()))
    return firings.with_condition(pc.if_else(holds, "held", "failed"))


def firings_of(rulebook: str, prepared: PreparedRule, detections: Detections) -> Firings:
    """The firings of one rule's detections. Their condition is `none` until it is asked."""
    d = detections
    occurrences = constituent_ids(d, prepared.id_columns)
    key = prepared.shape.key
    keys = _instants(d.keys, key)
    ids = firing_ids(rulebook, d.rule, keys, d.start, d.end, d.offsets, occurrences)
    table = pa.table(
        [
            as_binary(ids),
            *(cast_to(d.keys[field.name], field.type) for field in key),  # exact in the id
            pa.array(d.start).cast(INSTANT),
            pa.array(d.end).cast(INSTANT),
            pa.array(1 + d.depths),
            pa.repeat(pa.scalar("none"), len(d)),
            pa.array(np.diff(d.offsets).astype(np.int32)),
        ],
        names=[
            "firing_id",
            *key.names,
            "started_at",
            "detected_at",
            "depth",
            "condition",
            "constituents",
        ],
    )
    relation = parameter_relation(prepared.shape, d, as_hex(ids), prepared.wanted)
    return Firings(d.rule, table, relation, constituent_sources(d), prepared.rule.about)


def _instants(keys: pa.Table, of: pa.Schema) -> pa.Table:
    """Keys, with dates as instants where others of the key are: which of them a step has seen
    together is no matter (G6)."""
    for field in of:
        at = keys.column_names.index(field.name)
        if pa.types.is_timestamp(field.type) and pa.types.is_date(keys.field(at).type):
            keys = keys.set_column(at, field.name, keys[field.name].cast(field.type))
    return keys
