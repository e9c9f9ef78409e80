"""The scripts of a rulebook in buckets: each after what it takes, with what it carries."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from tidegate.engine.detector.behind import check_held, released
from tidegate.engine.detector.detector import Detector
from tidegate.engine.detector.edges import BY
from tidegate.engine.detector.partitioned import Partitioned
from tidegate.engine.detector.parts import due_of
from tidegate.engine.detector.timers import FloodError
from tidegate.engine.ids import column_set
from tidegate.engine.script.book import (
    in_order,
    names_used,
    script_of,
    sources_of,
    taken_rules,
)
from tidegate.engine.script.emissions import Emissions
from tidegate.engine.script.run import Runner
from tidegate.engine.script.state import PREFIX, Tables
from tidegate.engine.scriptfaults import kept_faults, runaway, stop_at_fault
from tidegate.engine.scriptinputs import as_declared, detected, taken
from tidegate.engine.state import Parked
from tidegate.engine.values import FOREVER, Batch, Carried, Needs, Plan, Rejected
from tidegate.rules import model
from tidegate.rules.lateness import lateness_micros


@dataclass(slots=True)
class Scripted:
    """What the scripts did in one bucket. batches: what they emit, by event type; tables: what they
    carry on, and the names of those that `changed`; parked: scripts that have run away;
    passed_over: by parked script, how many occurrences it did not see."""

    batches: dict[str, Batch] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    parked: list[Parked] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    passed_over: dict[str, int] = field(default_factory=dict)


def digest_of(book: model.Rulebook, script: model.Script) -> str:
    """Digest of what a script does, and of what it takes (G9); layout and comments are no part."""
    own = script_of(book, script).digest
    said = (own, sorted(script.inputs.items()), lateness_micros(book).get(script.name))
    return hashlib.sha256(repr(said).encode()).hexdigest()[:32]


class Scripts:
    """The enabled scripts of a rulebook, from their activations on. `needs`: what they read of each
    event type. A rule that a script takes is detected here once more, ahead of all others."""

    def __init__(
        self,
        book: model.Rulebook,
        activations: Mapping[str, int],
        needs: Needs,
    ) -> None:
        behind = lateness_micros(book)
        kinds = book.events.items()
        self._events = {name: e for name, e in kinds if isinstance(e, model.ScriptEvent)}
        self._running = [
            _Running(book, script, activations, needs, behind.get(script.name))
            for script in in_order(book)
        ]

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
        done = Scripted()
        for each in self._running:
            each.step(tables, batches, plan, stopped, limits, done)
        done.changed |= tables.keys() - done.tables.keys()
        for event, batch in done.batches.items():
            done.batches[event] = as_declared(batch, self._events[event])
        return done

    def next_due(self, tables: Tables, stopped: Collection[str]) -> int | None:
        """The watermark at which something happens though nothing arrives."""
        found = [each.next_due(tables, stopped) for each in self._running]
        first = min(found, default=FOREVER)
        return first if first < FOREVER else None


class _Running:
    """A script that runs. `behind`: how far behind the watermark; None where no event of its has a
    time of its own."""

    def __init__(
        self,
        book: model.Rulebook,
        script: model.Script,
        activations: Mapping[str, int],
        needs: Needs,
        behind: int | None,
    ) -> None:
        self._script, self._needs, self._behind = script, needs, behind or 0
        compiled = script_of(book, script)
        taken_events = names_used(script)
        self._columns = {event: needs.ids[script.name, event] for event in taken_events}
        sources = sources_of(book, script)
        for name, each in script.inputs.items():
            ids = column_set(self._columns[each.event])
            sources[name] = replace(sources[name], ids=ids)
        self._runner = Runner(
            compiled,
            activations[script.name],
            sources,
            partitions_max=book.settings.state_partitions,
        )
        self._own = f"{PREFIX}{compiled.digest}/"
        self._fed, self._held = f"{PREFIX}{script.name}:fed:", f"{PREFIX}{script.name}:waits:"
        self._by = {e: f"{e}{BY}{behind}" for e in taken_events} if behind is not None else {}
        self._checked = False
        self._rules = _detector_of(book, script, activations)

    def step(
        self,
        tables: Tables,
        batches: Mapping[str, Batch],
        plan: Plan,
        stopped: Collection[str],
        limits: model.Settings,
        done: Scripted,
    ) -> None:
        name, watermark = self._script.name, plan.watermark - self._behind
        may_cut, most = plan.watermark > plan.watermark_before, limits.timers_per_bucket_max
        arrived = {e: b for e, b in batches.items() if e in self._columns} | {
            e: b for e, b in done.batches.items() if e in self._columns
        }
        if self._rules is not None:
            arrived |= self._detect(self._rules, tables, batches, plan, stopped, most, done)
        arrived = {e: taken(b, self._columns[e]) for e, b in arrived.items()}
        arrived = self._let_go(tables, arrived, plan.watermark, done)
        own = {n: t for n, t in tables.items() if n.startswith(self._own)}
        if name in plan.activations:
            done.changed |= own.keys()
            own = {}
        if name in stopped:
            done.tables |= own
            done.passed_over[name] = sum(map(len, arrived.values()))
            return
        due = self._runner.next_due(Carried(own))
        if not arrived and own and (due is None or due > watermark):
            done.tables |= own
            return
        inputs = {
            input_: arrived[each.event]
            for input_, each in self._script.inputs.items()
            if each.event in arrived
        }
        step = self._runner.step(Carried(own), inputs, watermark, most)
        if step.reached < watermark and not step.parked and may_cut:
            raise FloodError(step.reached + self._behind)
        done.tables |= step.carried.tables
        done.changed |= step.carried.changed
        stop_at_fault(self._script, step.emissions)
        done.rejected += kept_faults(self._script, step.emissions, limits)
        if step.parked:
            done.parked.append(runaway(self._script, step.emissions, step.reached))
            missed = (int((b.time > step.reached).sum()) for b in arrived.values())
            done.passed_over[name] = sum(missed)
        first = plan.watermark_before + 1 - self._behind
        self._emit(step.emissions, min(first, watermark), done)

    def _emit(self, emissions: Emissions, first: int, done: Scripted) -> None:
        """Add what was emitted. What comes of timers that are overdue, of a script that was parked,
        stands just after the last bucket."""
        for output, event in self._script.outputs.items():
            batch = emissions.batch(output, event)
            if batch is not None:
                done.batches[event] = replace(batch, time=np.maximum(batch.time, first))

    def _detect(
        self,
        rules: Partitioned,
        tables: Tables,
        batches: Mapping[str, Batch],
        plan: Plan,
        stopped: Collection[str],
        limit: int,
        done: Scripted,
    ) -> dict[str, Batch]:
        """What the rules detect that the script takes."""
        own = Carried(_under(self._fed, tables))
        known = {**batches, **done.batches}
        found, kept, reached = rules.step(own, known, plan.watermark, parked=stopped, limit=limit)
        if reached < plan.watermark and plan.watermark > plan.watermark_before:
            raise FloodError(reached)
        done.tables |= {self._fed + n: t for n, t in kept.tables.items()}
        done.changed |= {self._fed + n for n in kept.changed}
        return {d.rule: detected(d, self._needs) for d in found if d.rule in self._columns}

    def _let_go(
        self, tables: Tables, arrived: dict[str, Batch], watermark: int, done: Scripted
    ) -> dict[str, Batch]:
        """What the script sees by its own watermark, of what arrives and of what waited for it."""
        if not self._by:
            return arrived
        waiting = _under(self._held, tables)
        events = frozenset(self._by.values())
        if not self._checked:
            check_held(waiting, events)
            self._checked = True
        found, held = released(waiting, arrived, events, watermark)
        done.tables |= {self._held + n: t for n, t in held.items()}
        either = waiting.keys() | held.keys()
        done.changed |= {self._held + n for n in either if waiting.get(n) is not held.get(n)}
        return {event: found[by] for event, by in self._by.items() if by in found}

    def next_due(self, tables: Tables, stopped: Collection[str]) -> int:
        """The watermark at which something happens though nothing arrives."""
        found = [FOREVER]
        for name, table in tables.items():
            if name.startswith(self._held):
                found.append(due_of(table))
        if self._script.name not in stopped:
            due = self._runner.next_due(Carried(tables))
            found += [] if due is None else [due + self._behind]
        if self._rules is not None:
            due = self._rules.next_due(Carried(_under(self._fed, tables)), stopped)
            found += [] if due is None else [due]
        return min(found)


def _under(prefix: str, tables: Tables) -> dict[str, pa.Table]:
    """The tables whose names begin so, without that."""
    return {n.removeprefix(prefix): t for n, t in tables.items() if n.startswith(prefix)}


def _detector_of(
    book: model.Rulebook, script: model.Script, activations: Mapping[str, int]
) -> Partitioned | None:
    """What detects the rules that a script takes; None if it takes none."""
    own = taken_rules(book, script)
    if own is None:
        return None
    behind = {name: by for name, by in lateness_micros(book).items() if name in own.rules}
    detector = Detector(own, activations, lateness=behind)
    return Partitioned(detector, book.settings.state_partitions)
