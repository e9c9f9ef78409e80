"""A bucket's step of scripts and rules, and what its limits do to them and to plans."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tidegate.engine.core.state import Parked, State
from tidegate.engine.core.values import Batch, Bucket, Carried, Detections, Load, Needs, Stepped
from tidegate.engine.detect.events.graph.limits import RuleLimitError
from tidegate.engine.detect.events.graph.timers import FloodError
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.engine.detect.load import Loads, tables_of
from tidegate.engine.detect.scripting import Scripted, Scripts, table_of
from tidegate.engine.detect.scripts.state import PREFIX, Tables
from tidegate.rules.analysis.lateness import lateness_micros
from tidegate.rules.model import Rulebook, Settings


@dataclass(frozen=True, slots=True)
class Detected:
    """What a bucket's step found, the rules and scripts that a limit stopped on the way, and what
    the scripts did."""

    found: tuple[Detections, ...]
    carried: Carried
    parked: tuple[Parked, ...]
    scripted: Scripted


class Detecting:
    """What detects for one rulebook: its scripts, then the detector of all rules, which sees what
    the scripts emit. Both carry their state in the same tables, told apart by name."""

    def __init__(
        self,
        book: Rulebook,
        activations: Mapping[str, int],
        needs: Needs,
    ) -> None:
        limits, behind = book.settings, lateness_micros(book)
        rules = Detector(book, activations, threads=limits.detect_threads, lateness=behind)
        self.rules = Partitioned(rules, limits.state_partitions)
        self._scripts = Scripts(book, activations, needs)
        self._left: tuple[Carried, Carried] | None = None  # by the last step: all, and the rules'
        scripts = {name: {table_of(book, each)} for name, each in book.scripts.items()}
        self._loads = Loads({**tables_of(self.detector.graph), **scripts})

    @property
    def detector(self) -> Detector:
        """Of all rules."""
        return self.rules.detector

    def step(
        self,
        bucket: Bucket,
        carried: Carried,
        stopped: Collection[str],
        limits: Settings,
    ) -> tuple[Stepped, Scripted]:
        """One bucket: what the rules detect, with all that is carried on, and what scripts did."""
        plan, own = bucket.plan, self._carried_by_rules(carried)
        tables = _of_scripts(carried.tables)
        scripted = self._scripts.step(tables, bucket.batches, plan, stopped, limits)
        batches = {**bucket.batches, **scripted.batches} if scripted.batches else bucket.batches
        made = self.rules.step(
            own, batches, plan.watermark, parked=stopped, limit=limits.timers_per_bucket_max
        )
        if not scripted.tables and not scripted.changed:
            return made, scripted
        kept = made.carried
        whole = Carried({**kept.tables, **scripted.tables}, kept.changed | scripted.changed)
        self._left = whole, kept
        return made._replace(carried=whole), scripted

    def next_due(self, carried: Carried, stopped: Collection[str]) -> int | None:
        """The watermark at which something happens though nothing arrives."""
        due = (
            self.rules.next_due(self._carried_by_rules(carried), stopped),
            self._scripts.next_due(_of_scripts(carried.tables), stopped),
        )
        return min((at for at in due if at is not None), default=None)

    def loads(self, carried: Carried) -> dict[str, Load]:
        """By rule and script, what it carries."""
        return self._loads.of(carried.tables)

    def passed_over(
        self,
        carried: Carried,
        batches: Mapping[str, Batch],
        watermark: int,
        parked: Collection[str],
    ) -> dict[str, int]:
        """How many occurrences each parked rule does not see in a step from what was carried."""
        return self.rules.passed_over(self._carried_by_rules(carried), batches, watermark, parked)

    def _carried_by_rules(self, carried: Carried) -> Carried:
        """Without what scripts carry: the very value that the last step left, where it is that."""
        if self._left is not None and self._left[0] is carried:
            return self._left[1]
        if not _of_scripts(carried.tables):
            return carried
        own = {n: t for n, t in carried.tables.items() if not n.startswith(PREFIX)}
        return Carried(own, carried.changed)


def _of_scripts(tables: Tables) -> Tables:
    return {name: table for name, table in tables.items() if name.startswith(PREFIX)}


def detect(detecting: Detecting, state: State, bucket: Bucket, limits: Settings) -> Detected:
    """One step. A rule that reaches a limit is parked, and the others go on without it; so is a
    script that runs away. Raises `FloodError` where the step did not reach the plan's watermark,
    unless that stays where it was: then timers of a rule that was parked are overdue, and no cut
    leaves them out. Raises `EngineError('script-fault')`."""
    plan = bucket.plan
    before = (state.stopped - plan.enabled) | plan.disabled
    parked: dict[str, Parked] = {}
    while True:
        try:
            (found, carried, reached), scripted = detecting.step(
                bucket, state.carried, before | parked.keys(), limits
            )
        except RuleLimitError as error:
            at = plan.watermark_before + 1
            for rule in detecting.detector.parked_with({error.rule}) - before:
                reason = error.reason if rule == error.rule else f"it uses {error.rule}"
                parked[rule] = Parked(rule, reason, error.hint, at)
        else:
            if reached < plan.watermark and plan.watermark > plan.watermark_before:
                raise FloodError(reached)
            stopped = (*parked.values(), *scripted.parked)
            return Detected(found, carried, stopped, scripted)
