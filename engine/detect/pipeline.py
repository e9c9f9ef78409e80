"""The scripts of a rulebook one after another, and its rules between them: each script takes
events, what rules detect and what other scripts emit, and hands on what it emits. In `run`,
`simulate` and `tidegate.detect` alike."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from tidegate.engine.core.event_names import EventKey
from tidegate.engine.core.state import Parked
from tidegate.engine.core.state_parts import Shelf
from tidegate.engine.core.values import FOREVER, Batch, Carried, Detections
from tidegate.engine.detect.events.graph.timers import FloodError
from tidegate.engine.detect.events.occurrences.concatenation import both
from tidegate.engine.detect.events.state.group import Group
from tidegate.engine.detect.events.state.held_back import check_held, released
from tidegate.engine.detect.events.state.partitions import SCRIPT, Tables, due_of, earliest
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.step.stratified_detector import Detect
from tidegate.engine.detect.inputs import Taking
from tidegate.engine.detect.scripts.emissions import ERROR_NAME, Emissions
from tidegate.engine.detect.scripts.programs import script_of, sources_of
from tidegate.engine.detect.scripts.run import ScriptRunner, ScriptStepped
from tidegate.rules import model
from tidegate.rules.analysis.graph import strata, uses_of
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
    """Of a script."""

    def __init__(self, reached: int, script: model.Script) -> None:
        super().__init__(reached)
        self.script = script


@dataclass(slots=True)
class Flow:
    """The result of the scripts' step.

    detected      rule -> its detections as scripts take them, of the rules that some take
    emissions     of each script that has emitted something, in the order in which they run
    emitted       event type -> the emissions as scripts take them
    shown         event type -> the emissions as rules see them
    groups, rest  what is carried on (`Parts`)
    changed       the names of the tables that have changed
    parked        script that has run away -> when, and why
    passed_over   parked script -> how many occurrences it did not see"""

    detected: dict[str, Batch] = field(default_factory=dict)
    emissions: list[Emissions] = field(default_factory=list)
    emitted: dict[str, Batch] = field(default_factory=dict)
    shown: dict[str, Batch] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    rest: dict[str, pa.Table] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    parked: dict[str, Parked] = field(default_factory=dict)
    passed_over: dict[str, int] = field(default_factory=dict)

    @property
    def tables(self) -> Parts:
        """What is carried on."""
        return Parts(self.groups, self.rest)


class Pipeline:
    """The enabled scripts of a rulebook from their activations on, by stratum. `lateness`: how far
    behind the watermark scripts run. Who steps it gives it the `Detect` of the rules between them:
    that is asked for each stratum in turn, with what scripts have emitted so far."""

    def __init__(
        self,
        book: model.Rulebook,
        activations: Mapping[str, int],
        taking: Taking,
        lateness: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        def link(name: str) -> _Link:
            return _Link(book, book.scripts[name], activations, taking, lateness)

        layers = strata(book)
        self._strata = [[link(name) for name in one.scripts] for one in layers]
        self._links = [link for links in self._strata for link in links]
        self._detected = [bool(one.rules) or not n for n, one in enumerate(layers)]
        self._taking = taking
        used = {event for one in self._links for event in uses_of(one.script, ())}
        self._taken = frozenset(used & book.rules.keys())

    def step(
        self,
        tables: Tables,
        batches: Mapping[str, Batch],
        span: Span,
        detect: Detect,
        shelf: Shelf | None = None,
        stepped: Mapping[str, ScriptStepped] = MappingProxyType({}),
    ) -> Flow:
        """One step. `tables`: what is carried; `batches`: all occurrences by event type. `shelf`:
        where parts of what is carried lie in files. `stepped`: by script that others have stepped,
        what that gave.

        Raises `FloodError` where more timers are due than may fire, `InputError` where an
        occurrence does not fit its input, and as `Shelf.read` and `detect` do.
        """
        done, carried = Flow(), Parts.of(tables)
        for number, links in enumerate(self._strata):
            for link in links:
                link.step(carried, batches, span, done, shelf, stepped.get(link.script.name))
            self._hear(number, detect, done)
        groups = {n: one for n, one in carried.groups.items() if n not in done.groups}
        done.changed |= {*Parts(groups), *(carried.rest.keys() - done.rest.keys())}
        return done

    def step_whole(
        self,
        tables: Tables,
        batches: Mapping[str, Batch],
        watermark: int,
        detect: Detect,
        stopped: Collection[str] = (),
    ) -> Flow:
        """`step`, where nothing is left for another one: raises `InputError` where too many timers
        are due."""
        most = max(TIMERS_MAX, sum(map(len, batches.values())))
        with _few_timers(most):
            span = Span(watermark, stopped=stopped, limit=most)
            return self.step(tables, batches, span, detect)

    def finish(self, tables: Tables, stopped: Collection[str], detect: Detect) -> Flow:
        """What comes once the history has ended: the first `elapse` of each instance, and what
        scripts do with what `detect` still detects. Raises `InputError` as `step_whole` does."""
        done = Flow()
        with _few_timers(TIMERS_MAX):
            for number, links in enumerate(self._strata):
                for link in links:
                    link.finish(Parts.of(tables), stopped, done)
                self._hear(number, detect, done)
        return done

    def history(self, batches: Mapping[str, Batch], end: int, detect: Detect) -> None:
        """A whole history up to `end`, and what comes after it. `detect` steps each stratum once,
        beyond the end; scripts take what is detected up to it first."""
        done, after = Flow(), Flow()
        most = max(TIMERS_MAX, sum(map(len, batches.values())))
        with _few_timers(most):
            for number, links in enumerate(self._strata):
                for link in links:
                    link.step(Parts(), batches, Span(end, limit=most), done)
                for link in links:
                    link.finish(done.tables, done.parked, after)
                if not self._detected[number]:
                    continue
                shown = dict(done.shown)
                for event, batch in after.shown.items():
                    shown[event] = both(shown[event], batch) if event in shown else batch
                for rule, batch in self._heard(detect(number, shown)).items():
                    count = int(np.searchsorted(batch.time, end, side="right"))
                    if count:
                        done.detected[rule] = batch.take(np.arange(count))
                    if count < len(batch):
                        after.detected[rule] = batch.take(np.arange(count, len(batch)))

    def _hear(self, stratum: int, detect: Detect, done: Flow) -> None:
        """Takes what the rules of a stratum detect."""
        if self._detected[stratum]:
            done.detected |= self._heard(detect(stratum, done.shown))

    def _heard(self, found: Sequence[Detections]) -> dict[str, Batch]:
        """Detections as scripts take them, of the rules that some do."""
        return {d.rule: self._taking.detected(d) for d in found if d.rule in self._taken}

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
        self._own = self.runner.store.whole
        self._held = f"{SCRIPT}{script.name}:waits:"

    def step(
        self,
        tables: Parts,
        batches: Mapping[str, Batch],
        span: Span,
        done: Flow,
        shelf: Shelf | None = None,
        stepped: ScriptStepped | None = None,
    ) -> None:
        name, watermark = self.script.name, span.watermark - self._behind
        may_cut = span.watermark > span.before
        given: dict[str, Batch] = {}
        if stepped is None:
            given = self._given(batches, done)
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
        if self.script.name in stopped:
            return
        carried = Carried(tables.only(self._own))
        given = self._given({}, done)
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

    def _given(self, batches: Mapping[str, Batch], done: Flow) -> dict[str, Batch]:
        """What arrives at each input."""
        known = ChainMap(done.detected, done.emitted, {**batches})
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
        return min((due for due in found if due is not None), default=FOREVER)


@contextmanager
def _few_timers(most: int) -> Iterator[None]:
    """Raises `InputError` where a script has more than `most` timers due."""
    try:
        yield
    except _ScriptFloodError as flood:
        raise _too_many(flood.script, most) from None


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
