"""A rulebook compiled for its buckets: one value, made before a bucket is read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from tidegate.engine.capture.read import Capture
from tidegate.engine.core.state import State
from tidegate.engine.core.types.schemas import covers
from tidegate.engine.core.values import Needs, Plan
from tidegate.engine.detect.stage import BucketDetector, digest_of
from tidegate.engine.evaluate.action_events import watched
from tidegate.engine.evaluate.requirements import Prepared
from tidegate.rules.analysis.graph import later_ones
from tidegate.rules.errors import EngineError, InputError
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.nodes import business_calendars
from tidegate.rules.model import Pattern, Rulebook

Prepare = Callable[[Mapping[str, str], Collection[str]], Prepared]
"""Prepares the rules' SQL. Arguments: the tables' schemas (JSON) by name, and the rules that have
run with the same texts before (`engine.evaluate.requirements.prepare`)."""
Detecting = Callable[[Rulebook, Mapping[str, int], Needs], BucketDetector]
"""Makes the detector of a rulebook, of its activations and of what its scripts read."""


@dataclass(frozen=True, slots=True)
class CompiledRulebook:
    """Rulebook, schemas, prepared statements, capture, detector, digests: from the reading of a
    bucket to its last action all of it is of one piece. A bucket that needs another one (a rule
    is activated, a table has a new column) makes it before it reads anything; the loop takes it
    over when the bucket's transaction is committed, or stays with the one it had.

    `schemas`: JSON, by table that raises events. `digests`: by active rule or script, of what it
    detects with. `activations`: by rule or script. `detector`: None until the first plan activates
    what is new.
    `watched`: by rule, the events of its action that some rule names. `later`: `later_ones`.
    `detecting`: makes the detector.
    """

    rulebook: Rulebook
    digests: Mapping[str, str]
    schemas: Mapping[str, str]
    prepared: Prepared
    capture: Capture
    activations: Mapping[str, int]
    detector: BucketDetector | None = None
    watched: Mapping[str, frozenset[str]] = field(default_factory=dict)
    later: Mapping[str, frozenset[str]] = field(default_factory=dict)
    detecting: Detecting = BucketDetector

    @property
    def targets(self) -> frozenset[str]:
        """The tables that its statements write."""
        rules = self.prepared.rules.values()
        return frozenset(s.target for rule in rules for s in rule.statements if s.target)


def first_compiled(
    rulebook: Rulebook,
    digests: Mapping[str, str],
    schemas: Mapping[str, str],
    activations: Mapping[str, int],
    prepare: Prepare,
    proven: Collection[str] = (),
    detecting: Detecting = BucketDetector,
) -> CompiledRulebook:
    """The first one of a run. Raises InputError with everything that is wrong with the SQL."""
    prepared = prepare(schemas, proven)
    active = {rule: activations[rule] for rule in digests if rule in activations}
    capture = Capture(rulebook, prepared.needs)
    return CompiledRulebook(
        rulebook,
        digests,
        schemas,
        prepared,
        capture,
        active,
        watched=watched(rulebook),
        later=later_ones(rulebook.rules),
        detecting=detecting,
    )


def compiled_for(compiled: CompiledRulebook, plan: Plan, prepare: Prepare) -> CompiledRulebook:
    """The compiled rulebook of a plan's bucket: this one, unless it is the first, which activates
    rules, or the plan crosses a commit that gives a table columns which this one does not know."""
    grown = {
        span.table: span.cursor.schema
        for span in plan.ranges
        if not covers(compiled.schemas.get(span.table), span.cursor.schema)
    }
    if grown:
        schemas = {**compiled.schemas, **grown}
        try:
            prepared = prepare(schemas, compiled.rulebook.rules.keys())
        except InputError as error:
            names = ", ".join(f"`{name}`" for name in sorted(grown))
            raise EngineError(
                "schema-incompatible",
                f"with the new columns of {names} the rulebook does not fit any more:\n{error}",
                "change the rulebook and run again: the cursors stay before that commit",
            ) from error
        capture = Capture(compiled.rulebook, prepared.needs)
        compiled = replace(compiled, schemas=schemas, prepared=prepared, capture=capture)
    if compiled.detector is None or plan.activations:
        activations = {**compiled.activations, **plan.activations}
        detector = compiled.detecting(compiled.rulebook, activations, compiled.prepared.needs)
        compiled = replace(compiled, activations=activations, detector=detector)
    return compiled


def detects(pattern: Pattern) -> str:
    """Digest of what a rule detects: `on`, `per`, context, `where` (G9)."""
    parts: tuple[object, ...] = (
        format_expression(pattern.on),
        pattern.key_names,
        sorted(pattern.per.items()),
        pattern.context,
    )
    if calendars := business_calendars(pattern.on):
        parts = (*parts, *sorted(map(repr, calendars)))
    if pattern.where:
        parts = (*parts, pattern.where.tree)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def digests_of(book: Rulebook) -> dict[str, str]:
    """By rule and script that is enabled, the digest of what it detects with."""
    found = {rule.name: detects(rule.pattern) for rule in book.rules.values() if rule.enabled}
    return found | script_digests(book)


def script_digests(book: Rulebook) -> dict[str, str]:
    """By script that is enabled, the digest of what it does."""
    enabled = (script for script in book.scripts.values() if script.enabled)
    return {script.name: digest_of(book, script) for script in enabled}


def without_edited(state: State, book: Rulebook, digests: Mapping[str, str]) -> State:
    """The state without the activations of edited scripts, which start anew."""
    known = state.activation_digests
    kept = {
        name: instant
        for name, instant in state.activations.items()
        if name not in book.scripts or known.get(name) == digests.get(name)
    }
    return state if len(kept) == len(state.activations) else replace(state, activations=kept)
