"""The scripts whose keys are stepped apart, in the tasks of a bucket that executors detect (G26).

Those are the enabled scripts whose input comes from tables, signals and clocks alone: each arrival
of an input with `group` has one key. What a script of the others takes is known only to the driver.

Example: `fraud` counts payments by card, `report` takes what `fraud` emits. Executors step `fraud`,
each the cards of its partitions. The driver puts in order what they have emitted, and steps
`report`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tidegate.engine.core.ports import LeftToDriverError, TooManyError
from tidegate.engine.core.state_parts import Shelf, judged, loaded
from tidegate.engine.core.values import Batch, Carried, Unread
from tidegate.engine.detect.events.occurrences import batches as of_batches
from tidegate.engine.detect.events.state.partitions import partitions
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.step.component_task import division, tasks_may_cut
from tidegate.engine.detect.inputs import Taking
from tidegate.engine.detect.pipeline import Span
from tidegate.engine.detect.scripts.emissions import merged
from tidegate.engine.detect.scripts.programs import script_of, sources_of, whole_reasons
from tidegate.engine.detect.scripts.run import ScriptStepped
from tidegate.engine.detect.scripts.task import Arrivals, ScriptDone, ScriptTask, Sent, runner_of
from tidegate.rules import model
from tidegate.rules.errors import EngineError


@dataclass(frozen=True)
class ScriptCut:
    """Says of occurrences which task of a script each is of. It may be sent away."""

    script: model.Script
    taking: Taking
    runner: bytes
    tasks: int
    partitions: int

    def __call__(self, batches: Arrivals) -> Iterator[tuple[int, dict[str, Batch]]]:
        """For each task that has any, its arrivals by input. Raises `InputError`."""
        found: list[dict[str, Batch]] = [{} for _ in range(self.tasks)]
        inputs = runner_of(self.runner).inputs
        for read in self.script.program.inputs:
            batch = batches.get(self.script.inputs[read.name].event)
            if batch is None or not len(batch):
                continue
            taken = self.taking.take(self.script, read, batch)
            index = [np.arange(len(taken))] * self.tasks
            if read.group:
                of = partitions(inputs.keys(read, taken), self.partitions) % self.tasks
                order = np.argsort(of, kind="stable")
                index = np.split(order, np.cumsum(np.bincount(of, minlength=self.tasks))[:-1])
            for own, at in zip(found, index, strict=True):
                if len(at):
                    own |= of_batches.cut({read.name: taken}, {read.name: at})
        yield from ((n, own) for n, own in enumerate(found) if own)


class ScriptTasks(NamedTuple):
    """The tasks of one script, what cuts its arrivals, and all that it carries."""

    script: str
    cut: ScriptCut
    tasks: Sequence[ScriptTask]
    carried: Parts
    before: Parts


class Given(NamedTuple):
    """A bucket. `tables`: what scripts carry; `slots`: so many tasks run at a time; `unread`: the
    rows that executors read."""

    tables: Parts
    batches: Mapping[str, Batch]
    span: Span
    slots: int
    unread: Unread | None
    shelf: Shelf | None


class KeyedScripts:
    """Those of a rulebook, from their activations on."""

    def __init__(
        self, book: model.Rulebook, activations: Mapping[str, int], taking: Taking
    ) -> None:
        reasons, most = whole_reasons(book), book.settings.state_partitions
        self._each = [
            KeyedScript(
                script,
                Sent(script_of(book, script), activations[name], sources_of(book, script), most),
                taking,
            )
            for name, script in book.scripts.items()
            if script.enabled and name not in reasons
        ]

    def tasks(self, given: Given) -> list[ScriptTasks]:
        """The tasks of each script to which something happens. Raises `InputError`, and as
        `Shelf.read`."""
        stopped = given.span.stopped
        some = (one for one in self._each if one.script.name not in stopped)
        return [one.tasks(given) for one in some if one.happens(given)]


class KeyedScript:
    """One of them. `sent`: what its tasks are made of."""

    def __init__(self, script: model.Script, sent: Sent, taking: Taking) -> None:
        self.script = script
        self._packed, self._most = sent.packed, sent.partitions_max
        self._runner = runner_of(self._packed)
        self._taking = taking

    def happens(self, given: Given) -> bool:
        """Whether anything does in a bucket."""
        due = self._runner.next_due(Carried(given.tables))
        timed = due is not None and due <= given.span.watermark
        return timed or given.unread is not None or self._arriving(given) > 0

    def tasks(self, given: Given) -> ScriptTasks:
        unread, shelf, store = given.unread, given.shelf, self._runner.store
        before = given.tables.only(store.whole)
        carried = Parts() if self.script.name in given.span.anew else before
        own, rows = store.own(carried), self._arriving(given) + (unread.estimate if unread else 0)
        tasks, count = division(
            given.slots, rows, own.count, own.rows, own.largest, self._most, adopted=True
        )
        if own and not tasks_may_cut(own.count, count, tasks):
            here = loaded(carried.named(), shelf)
            carried = Parts.of(store.cut_anew([*here.values()], count))
        cut = ScriptCut(self.script, self._taking, self._packed, tasks, count)
        arriving = dict(cut(given.batches))
        each = [
            ScriptTask(
                self._packed,
                carried.of_task(number, tasks),
                arriving.get(number, {}),
                given.span.watermark,
                given.span.limit,
                count,
                shelf,
                unread.found_max if unread else None,
            )
            for number in range(tasks)
        ]
        return ScriptTasks(self.script.name, cut, each, carried, before)

    def _arriving(self, given: Given) -> int:
        """How many occurrences arrive that the driver has read."""
        events = {each.event for each in self.script.inputs.values()}
        return sum(len(given.batches.get(event, ())) for event in events)


def stepped(
    given: Sequence[ScriptTasks],
    made: Sequence[ScriptDone],
    span: Span,
    shelf: Shelf | None,
    *,
    unread: bool,
) -> dict[str, ScriptStepped]:
    """What tasks, one script's after the other's, have done, by script. One that runs away is left
    to the driver, which knows the order of its keys; so is one whose timers are too many for a
    bucket that cannot be shorter. `unread`: executors have read rows, which the driver has not.
    Raises LeftToDriverError then, TooManyError, `InputError`, and as `Shelf` does."""
    found, left = dict[str, ScriptStepped](), [*made]
    for own in given:
        done, left = left[: len(own.tasks)], left[len(own.tasks) :]
        for task, one in zip(own.tasks, done, strict=True):
            if isinstance(one.failed, EngineError):
                raise judged(one.failed, task.tables, shelf)
            if one.failed:
                raise one.failed
        reached = min(one.reached for one in done)
        count = sum(one.emitted for one in done)
        stops = reached < span.watermark and span.watermark <= span.before
        if stops or any(one.parked for one in done):
            if unread:
                raise LeftToDriverError(f"script {own.script} runs away, or its timers are many")
            continue
        if own.tasks[0].found_max is not None and count > own.tasks[0].found_max:
            raise TooManyError(count)
        after = own.carried
        for one in done:
            after = one.tables.over(after.with_({}, one.gone))
        if shelf is not None:
            after = after.shelved(own.before, shelf)
        emissions = merged([one.emissions for one in done if one.emissions is not None])
        carried = Carried(after, after.differing(own.before))
        found[own.script] = ScriptStepped(emissions, carried, reached, parked=False)
    return found
