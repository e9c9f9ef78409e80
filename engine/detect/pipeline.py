"""The scripts of a rulebook one after another: each takes events, what rules detect and what other
scripts emit, and hands on what it emits. In `run`, `simulate` and `tidegate.detect` alike."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from tidegate.engine.core.event_names import EventKey
from tidegate.engine.core.state import Parked
from tidegate.engine.core.state_parts import Shelf
from tidegate.engine.core.values import FOREVER, Batch, Carried
from tidegate.engine.detect.events.graph.timers import FloodError
from tidegate.engine.detect.events.occurrences.concatenation import both
from tidegate.engine.detect.events.state.held_back import check_held, released
from tidegate.engine.detect.events.state.partitions import SCRIPT, Tables, due_of, earliest
from tidegate.engine.detect.events.state.parts import Group, Parts
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.engine.detect.inputs import Taking
from tidegate.engine.detect.scripts.emissions import ERROR_NAME, Emissions
from tidegate.engine.detect.scripts.programs import script_of, sources_of, taken_rules
from tidegate.engine.detect.scripts.run import ScriptRunner, ScriptStepped
from tidegate.rules import model
from tidegate.rules.analysis.graph import in_order, uses_of
from tidegate.rules.errors import InputError, Problem

TIMERS_MAX = 1_000_000
"""Of a script's timers that are due in a step that cannot be cut. Where more occurrences arrive: so
many."""


@dataclass(frozen=True, slots=True)
class Span:
    """The bounds of a step: it covers the instants after `before` and up to `watermark`. `stopped`:
    the scripts and rules that do not run. `anew`: the scripts that start with it. `limit`: the most
    timers that may fire."""

    watermark: int
    before: int = -FOREVER
    stopped: Collection[str] = ()
    anew: Collection[str] = ()
    limit: int | None = None


class _ScriptFloodError(FloodError):
    """Of a script, or of rules that it takes."""

    def __init__(self, reached: int, script: model.Script) -> None:
        super().__init__(reached)
        self.script = script


@dataclass(slots=True)
class Flow:
    """The result of the scripts' step.

    emissions     of each script that has emitted something, in the order in which they run
    emitted       event type -> the emissions as scripts take them
    shown         event type -> the emissions as rules see them
    groups, rest  what is carried on (`Parts`)
    changed       the names of the tables that have changed
    decoded       script -> what the rules that it takes carry, in hand (`Carried.decoded`)
    parked        script that has run away -> when, and why
    passed_over   parked script -> how many occurrences it did not see"""

    emissions: list[Emissions] = field(default_factory=list)
    emitted: dict[str, Batch] = field(default_factory=dict)
    shown: dict[str, Batch] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    rest: dict[str, pa.Table] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    decoded: dict[str, object] = field(default_factory=dict)
    parked: dict[str, Parked] = field(default_factory=dict)
    passed_over: dict[str, int] = field(default_factory=dict)

    @property
    def tables(self) -> Parts:
        """What is carried on."""
        return Parts(self.groups, self.rest)


class Pipeline:
    """The enabled scripts of a rulebook from their activations on, and those of the rules that they
    take: these are detected here once more, ahead of all others. `lateness`: how far behind the
    watermark scripts and rules run."""

    def __init__(
        self,
        book: model.Rulebook,
        activations: Mapping[str, int],
        taking: Taking,
        lateness: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._links = [
            _Link(book, script, activations, taking, lateness)
            for script in in_order(book)
            if isinstance(script, model.Script) and script.enabled
        ]

    def step(
        self,
        tables: Tables,
        batches: Mapping[str, Batch],
        span: Span,
        decoded: Mapping[str, object] = MappingProxyType({}),
        shelf: Shelf | None = None,
        stepped: Mapping[str, ScriptStepped] = MappingProxyType({}),
    ) -> Flow:
        """One step. `tables`: what is carried; `decoded`: the same as the step that left it has it
        in hand, if it is known; `batches`: all occurrences by event type. `shelf`: where parts of
        what is carried lie in files. `stepped`: by script that others have stepped, what that gave.

        Raises `FloodError` where more timers are due than may fire, `RuleLimitError` where a rule
        reaches a limit, `InputError` where an occurrence does not fit its input, and as
        `Shelf.read`.
        """
        done, carried = Flow(), Parts.of(tables)
        for link in self._links:
            made = stepped.get(link.script.name)
            link.step(carried, batches, span, done, decoded.get(link.script.name), shelf, made)
        groups = {n: one for n, one in carried.groups.items() if n not in done.groups}
        done.changed |= {*Parts(groups), *(carried.rest.keys() - done.rest.keys())}
        return done

    def step_whole(
        self,
        tables: Tables,
        batches: Mapping[str, Batch],
        watermark: int,
        stopped: Collection[str] = (),
    ) -> Flow:
        """`step`, where nothing is left for another one: raises `InputError` where too many timers
        are due."""
        most = max(TIMERS_MAX, sum(map(len, batches.values())))
        try:
            return self.step(tables, batches, Span(watermark, stopped=stopped, limit=most))
        except _ScriptFloodError as flood:
            raise _too_many(flood.script, most) from None

    def finish(self, tables: Tables, stopped: Collection[str]) -> Flow:
        """What comes once the history has ended: what rules wait for runs out, and the first
        `elapse` of each instance. Raises `InputError` as `step_whole` does."""
        done = Flow()
        try:
            for link in self._links:
                link.finish(Parts.of(tables), stopped, done)
        except _ScriptFloodError as flood:
            raise _too_many(flood.script, TIMERS_MAX) from None
        return done

    def next_due(self, tables: Tables, stopped: Collection[str]) -> int | None:
        """The watermark at which something happens though nothing arrives."""
        carried = Parts.of(tables)
        return earliest(link.next_due(carried, stopped) for link in self._links)

    @property
    def without_table(self) -> list[str]:
        """The scripts with more states than are kept, which go on more slowly."""
        return [link.script.name for link in self._links if link.runner.without_table]


class _Link:
    """A script of a pipeline."""

    def __init__(
        self,
        book: model.Rulebook,
        script: model.Script,
        activations: Mapping[str, int],
        taking: Taking,
        lateness: Mapping[str, int],
    ) -> None:
        compiled, most = script_of(book, script), book.settings.state_partitions
        self.script = script
        self.runner = ScriptRunner(
            compiled, activations[script.name], sources_of(book, script), taking.ranking, most
        )
        self._taking = taking
        self._behind = lateness.get(script.name, 0)
        self._by: dict[str, str] = {}  # by input, its name as that of one that is seen behind
        if script.name in lateness:
            self._by = {name: str(EventKey(name, behind=self._behind)) for name in script.inputs}
        self._checked = False
        self._rules: Partitioned | None = None
        own = taken_rules(book, script)
        if own is not None:
            behind = {name: by for name, by in lateness.items() if name in own.rules}
            rules = Detector(own, activations, taking.ranking, lateness=behind)
            self._rules = Partitioned(rules, most)
        self._own = self.runner.store.whole
        self._fed, self._held = f"{SCRIPT}{script.name}:fed:", f"{SCRIPT}{script.name}:waits:"

    def step(
        self,
        tables: Parts,
        batches: Mapping[str, Batch],
        span: Span,
        done: Flow,
        decoded: object = None,
        shelf: Shelf | None = None,
        stepped: ScriptStepped | None = None,
    ) -> None:
        name, watermark = self.script.name, span.watermark - self._behind
        may_cut = span.watermark > span.before
        given: dict[str, Batch] = {}
        if stepped is None:
            rules = Carried(_under(self._fed, tables.rest), decoded=decoded)
            detected, reached = self._detect(rules, batches, span, None, done)
            if reached < span.watermark and may_cut:
                raise _ScriptFloodError(reached, self.script)
            given = self._given(batches, detected, done)
            given = self._let_go(tables.rest, given, span.watermark, done)
        own = tables.only(self._own)
        if name in span.anew:
            done.changed |= {*own}
            own = Parts()
        if name in span.stopped:
            done.groups |= own.groups
            done.passed_over[name] = self._seen_after(given, -FOREVER)
            return
        if stepped is None:
            due = self.runner.next_due(Carried(own))
            if not given and own and (due is None or due > watermark):
                done.groups |= own.groups
                return
        step = stepped or self.runner.step(Carried(own), given, watermark, span.limit, shelf)
        if step.reached < watermark and not step.parked and may_cut:
            raise _ScriptFloodError(step.reached + self._behind, self.script)
        done.groups |= Parts.of(step.carried.tables).groups
        done.changed |= step.carried.changed
        if step.parked:
            fault = step.emissions.values[ERROR_NAME][-1].as_py()
            hint = "mend the script, or raise the limit"
            done.parked[name] = Parked(name, fault["message"], hint, step.reached)
            done.passed_over[name] = self._seen_after(given, step.reached)
        self._hand_on(step.emissions, min(span.before + 1 - self._behind, watermark), done)

    def finish(self, tables: Parts, stopped: Collection[str], done: Flow) -> None:
        last = max((int(batch.time[-1]) for batch in done.shown.values()), default=0)
        span = Span(FOREVER, stopped=stopped)
        rules = Carried(_under(self._fed, tables.rest))
        detected, _ = self._detect(rules, {}, span, last, done)
        if self.script.name in stopped:
            return
        carried = Carried(tables.only(self._own))
        given = self._given({}, detected, done)
        if given:
            last = max(int(batch.time[-1]) for batch in given.values())
            step = self.runner.step(carried, given, last, TIMERS_MAX)
            self._hand_on(step.emissions, -FOREVER, done)
            if step.parked:
                return
            if step.reached < last:
                raise _ScriptFloodError(step.reached, self.script)
            carried = step.carried
        self._hand_on(self.runner.finish(carried), -FOREVER, done)

    def _detect(
        self,
        carried: Carried,
        batches: Mapping[str, Batch],
        span: Span,
        last: int | None,
        done: Flow,
    ) -> tuple[dict[str, Batch], int]:
        """What rules detect that the script takes, from what these carry; and how far they went."""
        if self._rules is None:
            return {}, span.watermark
        known = {**batches, **done.shown}
        found, kept, reached = self._rules.step(
            carried, known, span.watermark, last, span.stopped, span.limit
        )
        done.decoded[self.script.name] = kept.decoded
        done.rest |= {self._fed + n: t for n, t in kept.tables.items()}
        done.changed |= {self._fed + n for n in kept.changed}
        taken = uses_of(self.script, ())
        return {d.rule: self._taking.detected(d) for d in found if d.rule in taken}, reached

    def _given(
        self, batches: Mapping[str, Batch], detected: Mapping[str, Batch], done: Flow
    ) -> dict[str, Batch]:
        """What arrives at each input."""
        known = ChainMap({**detected}, done.emitted, {**batches})
        return {
            read.name: self._taking.take(self.script, read, known[event])
            for read in self.script.program.inputs
            for event in [self.script.inputs[read.name].event]
            if event in known
        }

    def _let_go(
        self, tables: Tables, given: dict[str, Batch], watermark: int, done: Flow
    ) -> dict[str, Batch]:
        """What the script sees by its own watermark, of what arrives and of what waited for it."""
        if not self._by:
            return given
        waiting = _under(self._held, tables)
        names = frozenset(self._by.values())
        if not self._checked:
            check_held(waiting, names)
            self._checked = True
        found, held = released(waiting, given, names, watermark)
        done.rest |= {self._held + n: t for n, t in held.items()}
        either = waiting.keys() | held.keys()
        done.changed |= {self._held + n for n in either if waiting.get(n) is not held.get(n)}
        return {name: found[by] for name, by in self._by.items() if by in found}

    def _seen_after(self, given: Mapping[str, Batch], instant: int) -> int:
        """How many occurrences there are after an instant; one that two inputs take is one."""
        counts = {
            self.script.inputs[name].event: int((batch.time > instant).sum())
            for name, batch in given.items()
        }
        return sum(counts.values())

    def _hand_on(self, emissions: Emissions, first: int, done: Flow) -> None:
        """Adds the emissions of a script. Overdue timers of a script that was parked emit at
        `first`, the instant after the last step."""
        if not len(emissions):
            return
        before = sum(len(each) for each in done.emissions if each.script == self.script.name)
        done.emissions.append(emissions)
        for output, event in self.script.outputs.items():
            batch = emissions.batch(output, event)
            if batch is None:
                continue
            place = None if batch.place is None else batch.place + before
            batch = replace(batch, time=np.maximum(batch.time, first), place=place)
            shown = self._taking.shown(batch)
            if event in done.emitted:
                batch, shown = both(done.emitted[event], batch), both(done.shown[event], shown)
            done.emitted[event], done.shown[event] = batch, shown

    def next_due(self, tables: Parts, stopped: Collection[str]) -> int:
        """The watermark at which something happens though nothing arrives."""
        rest = tables.rest
        found: list[int | None] = [due_of(t) for n, t in rest.items() if n.startswith(self._held)]
        if self.script.name not in stopped:
            due = self.runner.next_due(Carried(tables))
            found.append(None if due is None else due + self._behind)
        if self._rules is not None:
            found.append(self._rules.next_due(Carried(_under(self._fed, rest)), stopped))
        return min((due for due in found if due is not None), default=FOREVER)


def _too_many(script: model.Script, most: int) -> InputError:
    message = f"script {script.name}: more than {most:,} timers are due at once"
    hint = (
        "make its `elapse` longer, or end its loop; a time far off makes as many;"
        " `simulate --bucket N` takes fewer lines at once"
    )
    return InputError([Problem("timers", message, script.place, hint)])


def _under(prefix: str, tables: Tables) -> dict[str, pa.Table]:
    """The tables whose names begin so, without that."""
    return {n.removeprefix(prefix): t for n, t in tables.items() if n.startswith(prefix)}
