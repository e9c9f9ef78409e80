"""A bucket's step of scripts and rules, what its limits do to them and to plans, and what becomes
of scripts' faults: their emissions of `$error` (`eventscript.md` 5)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tidegate.engine.core.ports import Executors, LeftToDriverError
from tidegate.engine.core.state import Parked, State
from tidegate.engine.core.state_parts import Shelf
from tidegate.engine.core.text.times import python_values
from tidegate.engine.core.values import (
    Batch,
    Bucket,
    Carried,
    Detections,
    Firings,
    Load,
    Needs,
    Rejected,
)
from tidegate.engine.detect.events.graph.search_limits import RuleLimitError
from tidegate.engine.detect.events.graph.timers import FloodError
from tidegate.engine.detect.events.state.loads import Loads, PartLoads, tables_of
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.step.component_detector import Beside
from tidegate.engine.detect.events.step.component_step import ComponentsStepped, ComponentStep
from tidegate.engine.detect.events.step.component_task import Fires, Plan
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.stratified_detector import Detect, StratifiedDetector
from tidegate.engine.detect.inputs import LiveTaking
from tidegate.engine.detect.keyed_scripts import Given, KeyedScripts, stepped
from tidegate.engine.detect.pipeline import Flow, Pipeline, Span
from tidegate.engine.detect.scripts.emissions import ERROR_NAME, Emissions
from tidegate.engine.detect.scripts.programs import script_of
from tidegate.engine.detect.scripts.run import ScriptStepped
from tidegate.engine.detect.scripts.state import table_name
from tidegate.engine.detect.scripts.task import ScriptDone
from tidegate.rules import model
from tidegate.rules.analysis.graph import lateness_micros
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook, Settings


@dataclass(frozen=True, slots=True)
class BucketDetections:
    """What a bucket's step found: of each rule the detections, or the firings that executors made
    of these. parked: the rules and scripts that a limit stopped on the way;
    rejected: faults of scripts; passed_over: by parked script, how many occurrences it did not
    see; rows: so many that executors have read; loads: by rule and script, what it carries; apart:
    whether executors had anything to do; most: the detections, or a script's emissions if these are
    more."""

    found: tuple[Detections | Firings, ...]
    carried: Carried
    parked: tuple[Parked, ...]
    rejected: Sequence[Rejected]
    passed_over: Mapping[str, int]
    rows: int
    loads: Mapping[str, Load]
    apart: bool
    most: int


class BucketDetector:
    """What detects for one rulebook: its scripts, and its rules between them. Both carry their
    state in the same tables, told apart by name. `needs`: what the scripts read of each event type.
    `executors`: who detects what has a key, where a bucket's plan says so."""

    def __init__(
        self,
        book: Rulebook,
        activations: Mapping[str, int],
        needs: Needs,
        executors: Executors | None = None,
    ) -> None:
        behind, most = lateness_micros(book), book.settings.state_partitions
        self._strata = StratifiedDetector(Plan(book, activations, behind), most)
        self.rules = self._strata.whole
        taking = LiveTaking(book, needs)
        self._apart: Callable[[], _Apart] | None = None
        if executors is not None:  # and what they need is made when a bucket is theirs
            self._apart = cache(lambda: _Apart(book, activations, behind, executors, taking))
        self.scripts = book.scripts
        self._pipeline = Pipeline(book, activations, taking, behind)
        self._known = Parts()
        tables = tables_of(self.detector.graph)
        for name, script in book.scripts.items():
            tables[name] = {table_name(script_of(book, script))}
        self._loads = Loads(tables)

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
        shelf: Shelf | None = None,
        fires: Fires | None = None,
    ) -> tuple[ComponentsStepped, Flow]:
        """One bucket: what the rules detect, with all that is carried on; and what scripts did.
        `stopped`: the scripts and rules that do not run. `shelf`: where parts of what is carried
        lie in files. `fires`: makes firings of what executors detect.

        Raises `FloodError` where more timers of scripts are due than may fire, `RuleLimitError`
        where a rule reaches a limit, and `EngineError('script-fault')` for a fault under `on_error:
        stop`.
        """
        plan, most = bucket.plan, limits.timers_per_bucket_max
        own, tables = self._of_rules(carried), self._parts(carried).scripts(only=True)
        span = Span(plan.watermark, plan.watermark_before, stopped, plan.activations, most)
        flow = Flow()

        def through(made: Mapping[str, ScriptStepped], detect: Detect) -> None:
            """All scripts, of which executors have stepped some, and the driver's rules."""
            nonlocal flow
            flow = self._pipeline.step(tables, bucket.batches, span, detect, shelf, made)
            for emitted in flow.emissions:
                stop_at_fault(self.scripts[emitted.script], emitted)

        if plan.site.executors and self._apart is not None:
            found = self._apart().step(bucket, own, tables, span, shelf, fires, through)
        else:
            made = self._strata.step(
                own,
                plan.watermark,
                None,
                stopped,
                most,
                shelf,
                lambda detect: through(
                    {}, lambda stratum, shown: detect(stratum, {**bucket.batches, **shown})
                ),
            )
            found = ComponentsStepped(made)
        if not flow.tables and not flow.changed:
            return found, flow
        kept = found.stepped.carried
        tables = Parts.of(kept.tables) | flow.tables
        whole = Carried(tables, kept.changed | flow.changed, kept.decoded)
        return found._replace(stepped=found.stepped._replace(carried=whole)), flow

    def next_due(self, carried: Carried, stopped: Collection[str]) -> int | None:
        """The watermark at which something happens though nothing arrives."""
        due = (
            self.rules.next_due(self._of_rules(carried), stopped),
            self._pipeline.next_due(self._parts(carried).scripts(only=True), stopped),
        )
        return min((at for at in due if at is not None), default=None)

    def loads(self, carried: Carried, counted: PartLoads) -> dict[str, Load]:
        """By rule and script, what it carries. `counted`: see `Loads.of`."""
        return self._loads.of(carried.tables, counted)

    def passed_over(
        self,
        carried: Carried,
        batches: Mapping[str, Batch],
        watermark: int,
        parked: Collection[str],
    ) -> dict[str, int]:
        """How many occurrences each parked rule does not see in a step from what was carried."""
        return self.rules.passed_over(self._of_rules(carried), batches, watermark, parked)

    def _parts(self, carried: Carried) -> Parts:
        self._known = Parts.of(carried.tables, self._known)
        return self._known

    def _of_rules(self, carried: Carried) -> Carried:
        """Without what scripts carry."""
        tables = self._parts(carried).scripts(only=False)
        return Carried(tables, carried.changed, carried.decoded)


class _Apart:
    """What executors detect: components of rules, and scripts that have a key."""

    def __init__(
        self,
        book: Rulebook,
        activations: Mapping[str, int],
        lateness: Mapping[str, int],
        executors: Executors,
        taking: LiveTaking,
    ) -> None:
        most = book.settings.state_partitions
        self._executors = executors
        self._rules = ComponentStep(book, activations, lateness, executors, most)
        self._scripts = KeyedScripts(book, activations, taking)

    def step(
        self,
        bucket: Bucket,
        rules: Carried,
        tables: Parts,
        span: Span,
        shelf: Shelf | None,
        fires: Fires | None,
        through: Callable[[Mapping[str, ScriptStepped], Detect], None],
    ) -> ComponentsStepped:
        """One bucket. `tables`: what scripts carry. `through`: does the other scripts, and asks for
        what the driver's rules detect."""
        unread, batches = bucket.unread, bucket.batches
        slots = self._executors.slots
        given = self._scripts.tasks(Given(tables, batches, span, slots, unread, shelf))

        def done(made: Sequence[ScriptDone], detect: Detect) -> None:
            through(stepped(given, made, span, shelf, unread=unread is not None), detect)

        tasks, cuts = [task for own in given for task in own.tasks], [own.cut for own in given]
        return self._rules.step_unread(
            rules,
            batches,
            span.watermark,
            span.stopped,
            span.limit,
            unread,
            shelf,
            fires,
            Beside(tasks, cuts, done),
        )


def detect(
    detector: BucketDetector,
    state: State,
    bucket: Bucket,
    limits: Settings,
    shelf: Shelf | None = None,
    fires: Fires | None = None,
) -> BucketDetections:
    """One step. `shelf`, `fires`: see `BucketDetector.step`. A rule that reaches a limit is parked,
    and the others go on without it; so is a script that runs away. Raises `FloodError` where the
    step did not reach the plan's watermark, unless that stays where it was: then timers of a rule
    that was parked are overdue, and no cut leaves them out. Raises
    `EngineError('script-fault')`."""
    plan = bucket.plan
    before = (state.stopped - plan.enabled) | plan.disabled
    parked: dict[str, Parked] = {}
    while True:
        try:
            stopped = before | parked.keys()
            found, flow = detector.step(bucket, state.carried, stopped, limits, shelf, fires)
        except RuleLimitError as error:
            if bucket.unread is not None:
                raise LeftToDriverError(f"rule {error.rule} reaches a limit") from error
            at = plan.watermark_before + 1
            for rule in detector.detector.parked_with({error.rule}) - before:
                reason = error.reason if rule == error.rule else f"it uses {error.rule}"
                parked[rule] = Parked(rule, reason, error.hint, at)
        else:
            made = found.stepped
            if made.watermark < plan.watermark and plan.watermark > plan.watermark_before:
                raise FloodError(made.watermark)
            rejected = [
                row
                for emitted in flow.emissions
                for row in kept_faults(detector.scripts[emitted.script], emitted, limits)
            ]
            shown: tuple[Detections | Firings, ...] = (*made.detections, *found.fired)
            return BucketDetections(
                shown,
                made.carried,
                (*parked.values(), *flow.parked.values()),
                rejected,
                flow.passed_over,
                found.rows,
                detector.loads(made.carried, found.counted),
                found.apart,
                max([sum(map(len, shown)), *map(len, flow.emissions)]),
            )


def digest_of(book: model.Rulebook, script: model.Script) -> str:
    """Digest of what a script does, and of what it takes (G9); layout and comments are no part."""
    own = script_of(book, script).digest
    said = (own, sorted(script.inputs.items()), lateness_micros(book).get(script.name))
    return hashlib.sha256(repr(said).encode()).hexdigest()[:32]


def stop_at_fault(script: model.Script, found: Emissions) -> None:
    """Raises `EngineError('script-fault')` for the first fault under `on_error: stop`."""
    if script.on_error != "stop" or ERROR_NAME not in found.values:
        return
    fault = found.values[ERROR_NAME][0].as_py()
    raise EngineError(
        "script-fault",
        f"script {script.name}: {_reason(fault)}; `on_error: stop`",
        "mend the script, or say `on_error: log` to go on with a row in `rejected`",
    )


def kept_faults(script: model.Script, found: Emissions, limits: model.Settings) -> list[Rejected]:
    """The rows of `rejected` under `on_error: log`; one that counts those past the limit."""
    if script.on_error != "log" or ERROR_NAME not in found.values:
        return []
    most, count = limits.script_errors_kept_max, len(found.values[ERROR_NAME])
    source = f"script {script.name}"
    rows = [
        Rejected(fault["event"] or script.name, source, _reason(fault), row, fault["message"])
        for fault, row in _faults(found, most)
    ]
    if count > most:
        reason = f"{count - most:,} more faults (setting script_errors_kept_max)"
        rows.append(Rejected(script.name, source, reason, {}))
    return rows


def _faults(found: Emissions, most: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The first faults, and what is told of each: the key of its instance, the instant."""
    at = np.flatnonzero(found.output == len(found.outputs) - 1)[:most]
    keys = [python_values(column) for column in found.keys_of(at).values()]
    for number, fault in enumerate(found.values[ERROR_NAME].slice(0, most).to_pylist()):
        key = (column[number] for column in keys)
        yield fault, {**dict(zip(found.keys.column_names, key, strict=True)), "at": fault["at"]}


def _reason(fault: dict[str, Any]) -> str:
    """Why, without values of the user's tables."""
    event = f" at {fault['event']}" if fault["event"] else ""
    place = f", {fault['place']}" if fault["place"] else ""
    return f"{fault['kind']}{event}{place}"
