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
from tidegate.engine.detect.scripts.run import ScriptRunner, ScriptStepped
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


class KeyedScripts:
    """Those of a rulebook, from their activations on."""

    def __init__(
        self, book: model.Rulebook, activations: Mapping[str, int], taking: Taking
    ) -> None:
        reasons = whole_reasons(book)
        self._most = book.settings.state_partitions
        self._taking = taking
        self._each: list[tuple[model.Script, bytes, ScriptRunner]] = []
        for name, script in book.scripts.items():
            if script.enabled and name not in reasons:
                own = script_of(book, script), activations[name], sources_of(book, script)
                runner = ScriptRunner(*own, taking.ranking, self._most)
                self._each.append((script, Sent(*own, self._most).packed, runner))

    def tasks(
        self,
        tables: Parts,
        batches: Mapping[str, Batch],
        span: Span,
        slots: int,
        unread: Unread | None,
        shelf: Shelf | None,
    ) -> list[ScriptTasks]:
        """The tasks of a bucket, for so many slots: of each script to which something happens.
        `tables`: what scripts carry; `unread`: the rows that executors read. Raises `InputError`,
        and as `Shelf.read`."""
        return [
            self._tasks(one, tables, batches, span, slots, unread, shelf)
            for one in self._each
            if one[0].name not in span.stopped
            and self._happens(one, tables, batches, span.watermark, unread)
        ]

    def _happens(
        self,
        of: tuple[model.Script, bytes, ScriptRunner],
        tables: Parts,
        batches: Mapping[str, Batch],
        watermark: int,
        unread: Unread | None,
    ) -> bool:
        script, _, runner = of
        due = runner.next_due(Carried(tables))
        taken = (batches.get(each.event, ()) for each in script.inputs.values())
        return unread is not None or any(map(len, taken)) or (due is not None and due <= watermark)

    def _tasks(
        self,
        of: tuple[model.Script, bytes, ScriptRunner],
        tables: Parts,
        batches: Mapping[str, Batch],
        span: Span,
        slots: int,
        unread: Unread | None,
        shelf: Shelf | None,
    ) -> ScriptTasks:
        script, sent, runner = of
        store = runner.store
        before = tables.only(store.whole)
        carried = Parts() if script.name in span.anew else before
        own = store.own(carried)
        rows = sum(len(batches.get(each.event, ())) for each in script.inputs.values())
        rows += unread.estimate if unread else 0
        tasks, count = division(
            slots, rows, own.count, own.rows, own.largest, self._most, adopted=True
        )
        if own and not tasks_may_cut(own.count, count, tasks):
            here = loaded(carried.named(), shelf)
            carried = Parts.of(store.cut_anew([*here.values()], count))
        cut = ScriptCut(script, self._taking, sent, tasks, count)
        arriving = dict(cut(batches))
        most = unread.found_max if unread else None
        each = [
            ScriptTask(
                sent,
                carried.of_task(number, tasks),
                arriving.get(number, {}),
                span.watermark,
                span.limit,
                count,
                shelf,
                most,
            )
            for number in range(tasks)
        ]
        return ScriptTasks(script.name, cut, each, carried, before)


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
            after = after.with_(one.tables, one.gone)
        if shelf is not None:
            after = after.shelved(own.before, shelf)
        emissions = merged([one.emissions for one in done if one.emissions is not None])
        carried = Carried(after, after.differing(own.before))
        found[own.script] = ScriptStepped(emissions, carried, reached, parked=False)
    return found
