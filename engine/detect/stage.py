"""A bucket's step of scripts and rules, what its limits do to them and to plans, and what becomes
of scripts' faults: their emissions of `$error` (`eventscript.md` 5)."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.event_names import EventKey
from tidegate.engine.core.ports import Executors, LeftToDriverError
from tidegate.engine.core.state import Parked, State
from tidegate.engine.core.text.times import python_values
from tidegate.engine.core.values import (
    Batch,
    Bucket,
    Carried,
    Detections,
    Load,
    Needs,
    Rejected,
    Stepped,
)
from tidegate.engine.detect.events.graph.graph import Graph
from tidegate.engine.detect.events.graph.search_limits import RuleLimitError
from tidegate.engine.detect.events.graph.timers import FloodError
from tidegate.engine.detect.events.state.partitions import Tables, key_hash, part_name, place
from tidegate.engine.detect.events.state.tables import key_columns
from tidegate.engine.detect.events.step.component_step import ComponentStep
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.engine.detect.inputs import LiveTaking
from tidegate.engine.detect.pipeline import Flow, Pipeline, Span
from tidegate.engine.detect.scripts.emissions import ERROR_NAME, Emissions
from tidegate.engine.detect.scripts.programs import script_of
from tidegate.engine.detect.scripts.state import PREFIX
from tidegate.rules import model
from tidegate.rules.analysis.graph import lateness_micros
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook, Settings

_NOTHING = Load()


@dataclass(frozen=True, slots=True)
class BucketDetections:
    """What a bucket's step found. parked: the rules and scripts that a limit stopped on the way;
    rejected: faults of scripts; passed_over: by parked script, how many occurrences it did not
    see; rows: so many that executors have read."""

    found: tuple[Detections, ...]
    carried: Carried
    parked: tuple[Parked, ...]
    rejected: Sequence[Rejected]
    passed_over: Mapping[str, int]
    rows: int = 0


class BucketDetector:
    """What detects for one rulebook: its scripts, then the detector of all rules, which sees what
    the scripts emit. Both carry their state in the same tables, told apart by name. `needs`: what
    the scripts read of each event type. `executors`: who detects what has a key, where a bucket's
    plan says so."""

    def __init__(
        self,
        book: Rulebook,
        activations: Mapping[str, int],
        needs: Needs,
        executors: Executors | None = None,
    ) -> None:
        behind = lateness_micros(book)
        rules = Detector(book, activations, lateness=behind)
        self.rules = Partitioned(rules, book.settings.state_partitions)
        self._by_component: Callable[[], ComponentStep] | None = None
        if executors is not None:  # and what they need is made when a bucket is theirs
            made = book, activations, behind, executors, book.settings.state_partitions
            self._by_component = cache(lambda: ComponentStep(*made))
        self.scripts = book.scripts
        self._pipeline = Pipeline(book, activations, LiveTaking(book, needs), behind)
        tables = tables_of(self.detector.graph)
        for name, script in book.scripts.items():
            tables[name] = {PREFIX + script_of(book, script).digest}  # before they are cut
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
    ) -> tuple[Stepped, Flow, int]:
        """One bucket: what the rules detect, with all that is carried on; what scripts did; and
        how many rows executors have read.
        `stopped`: the scripts and rules that do not run.

        Raises `FloodError` where more timers of scripts are due than may fire, `RuleLimitError`
        where a rule reaches a limit, and `EngineError('script-fault')` for a fault under `on_error:
        stop`.
        """
        plan, most = bucket.plan, limits.timers_per_bucket_max
        own, tables, in_hand = _of_rules(carried), _of_scripts(carried.tables), carried.decoded
        known = in_hand if isinstance(in_hand, _InHand) else _InHand()
        span = Span(plan.watermark, plan.watermark_before, stopped, plan.activations, most)
        flow = self._pipeline.step(tables, bucket.batches, span, known.scripts)
        for emitted in flow.emissions:
            stop_at_fault(self.scripts[emitted.script], emitted)
        batches = {**bucket.batches, **flow.shown}
        given = own, batches, plan.watermark
        rows = 0
        if plan.site.executors and self._by_component is not None:
            by_component, unread = self._by_component(), bucket.unread
            made, rows = by_component.step_unread(*given, stopped, most, unread)
        else:
            made = self.rules.step(*given, parked=stopped, limit=most)
        if not flow.tables and not flow.changed:
            return made, flow, rows
        kept, left = made.carried, _InHand(made.carried.decoded, flow.decoded)
        whole = Carried({**kept.tables, **flow.tables}, kept.changed | flow.changed, left)
        return made._replace(carried=whole), flow, rows

    def next_due(self, carried: Carried, stopped: Collection[str]) -> int | None:
        """The watermark at which something happens though nothing arrives."""
        due = (
            self.rules.next_due(_of_rules(carried), stopped),
            self._pipeline.next_due(_of_scripts(carried.tables), stopped),
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
        return self.rules.passed_over(_of_rules(carried), batches, watermark, parked)


class _InHand(NamedTuple):
    """What rules carry, in hand, and for each script what the rules that it takes carry."""

    rules: object = None
    scripts: Mapping[str, object] = MappingProxyType({})


def _of_rules(carried: Carried) -> Carried:
    """Without what scripts carry."""
    in_hand = carried.decoded
    if isinstance(in_hand, _InHand):
        in_hand = in_hand.rules
    elif not _of_scripts(carried.tables):
        return carried
    own = {n: t for n, t in carried.tables.items() if not n.startswith(PREFIX)}
    return Carried(own, carried.changed, in_hand)


def _of_scripts(tables: Tables) -> Tables:
    return {name: table for name, table in tables.items() if name.startswith(PREFIX)}


def detect(
    detector: BucketDetector, state: State, bucket: Bucket, limits: Settings
) -> BucketDetections:
    """One step. A rule that reaches a limit is parked, and the others go on without it; so is a
    script that runs away. Raises `FloodError` where the step did not reach the plan's watermark,
    unless that stays where it was: then timers of a rule that was parked are overdue, and no cut
    leaves them out. Raises `EngineError('script-fault')`."""
    plan = bucket.plan
    before = (state.stopped - plan.enabled) | plan.disabled
    parked: dict[str, Parked] = {}
    while True:
        try:
            made, flow, rows = detector.step(bucket, state.carried, before | parked.keys(), limits)
        except RuleLimitError as error:
            if bucket.unread is not None:
                raise LeftToDriverError(f"rule {error.rule} reaches a limit") from error
            at = plan.watermark_before + 1
            for rule in detector.detector.parked_with({error.rule}) - before:
                reason = error.reason if rule == error.rule else f"it uses {error.rule}"
                parked[rule] = Parked(rule, reason, error.hint, at)
        else:
            if made.watermark < plan.watermark and plan.watermark > plan.watermark_before:
                raise FloodError(made.watermark)
            rejected = [
                row
                for emitted in flow.emissions
                for row in kept_faults(detector.scripts[emitted.script], emitted, limits)
            ]
            stopped = (*parked.values(), *flow.parked.values())
            return BucketDetections(
                made.detections, made.carried, stopped, rejected, flow.passed_over, rows
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
    keys = [python_values(found.keys.column(name).take(at)) for name in found.keys.column_names]
    for number, fault in enumerate(found.values[ERROR_NAME].slice(0, most).to_pylist()):
        key = (column[number] for column in keys)
        yield fault, {**dict(zip(found.keys.column_names, key, strict=True)), "at": fault["at"]}


def _reason(fault: dict[str, Any]) -> str:
    """Why, without values of the user's tables."""
    event = f" at {fault['event']}" if fault["event"] else ""
    place = f", {fault['place']}" if fault["place"] else ""
    return f"{fault['kind']}{event}{place}"


def tables_of(graph: Graph) -> dict[str, set[str]]:
    """By rule, the names of the tables of its nodes. A rule that runs behind, for late rows, stands
    in the graph under a name for each clock; these are counted for the rule as it was written."""
    found: dict[str, set[str]] = defaultdict(set)
    for rule, root in graph.roots.items():
        found[EventKey.of(rule).event] |= {f"node:{node.digest}" for node in root.walk()}
    return found


class Loads:
    """What each rule carries, counted: the instances in all nodes of its event graph, and the keys
    that have any; a script's are those of its keys. `carried_in`: by rule or script, the names of
    the tables that it carries. A part that is the same table as the last time is not counted again.

    Example: rules `r` and `s` share a node in which three instances of the keys 7 and 8 wait. It
    counts for both. In another node of `r` one more of key 8 waits: `r` carries four instances of
    two keys, `s` three of two. The occurrences that instances refer to count for nobody, nor do
    those that are held back for late rows.
    """

    def __init__(self, carried_in: Mapping[str, Collection[str]]) -> None:
        self._carried_in = {name: tuple(sorted(tables)) for name, tables in carried_in.items()}
        self._users: dict[str, set[tuple[str, ...]]] = {}
        for tables in self._carried_in.values():
            for table in tables:
                self._users.setdefault(table, set()).add(tables)
        self._seen: Tables = {}
        self._parts: dict[tuple[tuple[str, ...], int], Load] = {}
        self._sums: dict[tuple[str, ...], Load] = {}

    def of(self, tables: Tables) -> dict[str, Load]:
        """By rule or script, what it carries in the parts `tables`."""
        own = {n: part for n, part in tables.items() if n.rpartition("/")[0] in self._users}
        changed = {name for name, part in own.items() if self._seen.get(name) is not part}
        places = map(place, changed | (self._seen.keys() - own.keys()))
        for some, partition in {(some, at) for whole, at in places for some in self._users[whole]}:
            names = (part_name(name, partition) for name in some)
            new = _load([own[name] for name in names if name in own])
            old = self._parts.pop((some, partition), _NOTHING)
            if new != _NOTHING:
                self._parts[some, partition] = new
            instances, keys = self._sums.get(some, _NOTHING)
            self._sums[some] = Load(
                instances + new.instances - old.instances, keys + new.keys - old.keys
            )
        self._seen = own
        return {name: self._sums.get(some, _NOTHING) for name, some in self._carried_in.items()}


def _load(parts: Iterable[pa.Table]) -> Load:
    """Of parts of one partition: a key is in no other one."""
    some = [part for part in parts if len(part)]
    keyed = [columns for part in some if (columns := key_columns(part))]
    return Load(sum(map(len, some)), _distinct(keyed) if keyed else 0)


def _distinct(keyed: Sequence[Sequence[pa.ChunkedArray]]) -> int:
    """How many keys there are in some tables, given their key columns."""
    if len(keyed) == 1 and len(keyed[0]) == 1 and not pa.types.is_nested(keyed[0][0].type):
        return int(pc.count_distinct(keyed[0][0], mode="all").as_py())  # hashing takes ten times
    return len(np.unique(np.concatenate([key_hash(columns) for columns in keyed])))
