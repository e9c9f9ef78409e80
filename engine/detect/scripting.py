"""The scripts of a rulebook in buckets, with what they carry, and what becomes of their faults."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from tidegate.engine.core.state import Parked
from tidegate.engine.core.values import Batch, Needs, Plan, Rejected
from tidegate.engine.detect.inputs import LiveTaking
from tidegate.engine.detect.pipeline import Pipeline, Span
from tidegate.engine.detect.scriptfaults import kept_faults, runaway, stop_at_fault
from tidegate.engine.detect.scripts.programs import script_of
from tidegate.engine.detect.scripts.state import PREFIX, Tables
from tidegate.rules import model
from tidegate.rules.analysis.lateness import lateness_micros


@dataclass(frozen=True, slots=True)
class Scripted:
    """What the scripts did in one bucket. batches: what they emit, by event type; tables: what they
    carry on, and the names of those that `changed`; parked: scripts that have run away;
    passed_over: by parked script, how many occurrences it did not see."""

    batches: Mapping[str, Batch]
    tables: Mapping[str, pa.Table]
    changed: frozenset[str]
    parked: list[Parked]
    rejected: list[Rejected]
    passed_over: Mapping[str, int]


def digest_of(book: model.Rulebook, script: model.Script) -> str:
    """Digest of what a script does, and of what it takes (G9); layout and comments are no part."""
    own = script_of(book, script).digest
    said = (own, sorted(script.inputs.items()), lateness_micros(book).get(script.name))
    return hashlib.sha256(repr(said).encode()).hexdigest()[:32]


def table_of(book: model.Rulebook, script: model.Script) -> str:
    """The name of the table with a script's instances, before it is cut."""
    return PREFIX + script_of(book, script).digest


class Scripts:
    """The enabled scripts of a rulebook, from their activations on. `needs`: what they read of each
    event type."""

    def __init__(
        self,
        book: model.Rulebook,
        activations: Mapping[str, int],
        needs: Needs,
    ) -> None:
        self._scripts = book.scripts
        self._pipeline = Pipeline(book, activations, LiveTaking(book, needs), lateness_micros(book))
        self.next_due = self._pipeline.next_due

    def step(
        self,
        tables: Tables,
        batches: Mapping[str, Batch],
        plan: Plan,
        stopped: Collection[str],
        limits: model.Settings,
    ) -> Scripted:
        """One bucket. tables: what scripts carry; batches: all occurrences of the bucket by event
        type; stopped: the scripts and rules that do not run.

        Raises `FloodError` as the detector does, `RuleLimitError` where a rule that a script takes
        reaches a limit, and `EngineError('script-fault')` for a fault under `on_error: stop`.
        """
        most = limits.timers_per_bucket_max
        span = Span(plan.watermark, plan.watermark_before, stopped, plan.activations, most)
        flow = self._pipeline.step(tables, batches, span)
        rejected: list[Rejected] = []
        for name, parts in flow.emissions.items():
            for found in parts:
                stop_at_fault(self._scripts[name], found)
                rejected += kept_faults(self._scripts[name], found, limits)
        parked = [
            runaway(self._scripts[name], flow.emissions[name][-1], reached)
            for name, reached in flow.parked.items()
        ]
        return Scripted(
            flow.shown, flow.tables, frozenset(flow.changed), parked, rejected, flow.passed_over
        )
