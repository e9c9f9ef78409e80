"""Tasks: steps of one component over some partitions, wherever they run; and which task rows are of
(G26)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from tidegate.engine.core.ports import WORKER_ROWS
from tidegate.engine.core.state_parts import Shelf
from tidegate.engine.core.values import Batch, Captured, Carried, Detections, Firings, Int64, Load
from tidegate.engine.detect.events.graph.components import Component
from tidegate.engine.detect.events.occurrences import batches as of_batches
from tidegate.engine.detect.events.state.loads import counted_parts
from tidegate.engine.detect.events.state.partitions import (
    EVERY,
    GROWTH,
    partitions,
    place,
    wanted,
)
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.step import detections
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.key_codes import select
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook

Arrivals = Mapping[str, Batch]
FINER = 4
"""Executors' parts are so many times smaller than the driver's. A file has thousands of them, and a
task reads and writes all rows of those that it touches."""


class Cuts(Protocol):
    """Says of occurrences which of so many `tasks`, beside those of components, each is of: of each
    task that has any, by a name, its own. It may be sent away."""

    @property
    def tasks(self) -> int: ...

    def __call__(self, batches: Arrivals) -> Iterable[tuple[int, Arrivals]]: ...


class Plan(NamedTuple):
    """What a detector is made of: the arguments of `Detector`."""

    book: Rulebook
    activations: Mapping[str, int]
    lateness: Mapping[str, int]

    def detector(self, rules: Collection[str] | None) -> Detector:
        return Detector(self.book, self.activations, lateness=self.lateness, only=rules)


class Task(NamedTuple):
    """A step of a component over some partitions; of `Partitioned`, what it is given. What
    it leaves goes to files of `shelf`, unless that is None. `found_max`: with more detections it
    leaves nothing."""

    rules: tuple[str, ...]
    tables: Parts
    arrivals: Mapping[str, Batch]
    watermark: int
    last: int
    parked: tuple[str, ...]
    limit: int | None
    partitions: int
    adopted: bool
    shelf: Shelf | None
    found_max: int | None


class Packed(NamedTuple):
    """The firings of a rule, written out. They take half of the memory, and stay so until those of
    all tasks are put together."""

    rule: str
    data: bytes

    @property
    def firings(self) -> Firings:
        made: Firings = pickle.loads(self.data)  # noqa: S301, sent by a task
        return made


class Done(NamedTuple):
    """What a task has left.

    found      detections with the occurrences alone that they refer to, or the firings of these
    tables     what it has changed of what is carried
    gone       the names of what is not carried any more
    watermark  how far it got
    detected   how many detections, also where it has left none
    loads      what is carried in the partitions that it has touched
    failed     in place of these, why a file was not read or written, or the limit that a rule has
               reached
    """

    found: tuple[Detections | Packed, ...] = ()
    tables: Parts = Parts()
    gone: frozenset[str] = frozenset()
    watermark: int = 0
    detected: int = 0
    loads: Mapping[tuple[tuple[str, ...], int], Load] = {}
    failed: EngineError | None = None


Fires = Callable[[Detections, Shelf], Detections | Firings]
"""Makes the firings of a rule's detections where these are, their rows in a file; or leaves them as
they are."""


def run(plan: Plan, fires: Fires | None, given: Any, read: Sequence[Arrivals] = ()) -> Any:
    """A task, wherever it runs; one that stands beside those of components is called. `plan` is
    what the detectors of all components are made of. `fires` makes firings where the shelf has
    files. `read`: arrivals that were read there."""
    return _stepped(plan, fires, given, read) if isinstance(given, Task) else given(read)


def _stepped(plan: Plan, fires: Fires | None, given: Task, read: Sequence[Arrivals]) -> Done:
    whole = plan.detector(given.rules)
    detector = Partitioned(whole, given.partitions, adopted=given.adopted)
    shelf, arrivals = given.shelf, of_batches.with_read(given.arrivals, read, given.watermark)
    try:
        made = detector.step(
            Carried(given.tables),
            arrivals,
            given.watermark,
            given.last,
            given.parked,
            given.limit,
            shelf,
            given.partitions,
        )
        count = sum(map(len, made.detections))
        if given.found_max is not None and count > given.found_max:
            return Done(watermark=made.watermark, detected=count)
        left = made.carried
        kept = left.written
        of_keys = {name: table for name, table in kept.items() if place(name)[1] != EVERY}
        there = shelf.write(of_keys) if shelf is not None else {}
        found = [_compact(one, shelf, fires) for one in made.detections]
    except EngineError as error:
        return Done(failed=error)
    return Done(
        tuple(found),
        Parts.of({**kept, **there}),
        left.gone,
        made.watermark,
        count,
        counted_parts(whole.graph, left.tables) if shelf is not None else {},
    )


def _compact(found: Detections, shelf: Shelf | None, fires: Fires | None) -> Detections | Packed:
    """What is sent of a rule's detections."""
    made = fires(found, shelf) if fires is not None and shelf is not None else found
    if isinstance(made, Firings):
        return Packed(made.rule, pickle.dumps(made, protocol=5))
    return detections.compact(made)


@dataclass(frozen=True)
class Cut:
    """Makes occurrences of rows, and says which task each is of. It may be sent away. For the one
    who has sent it, it counts the rows."""

    capture: Callable[[int, int, pa.Table], Captured]
    keyed: Sequence[Component]
    tasks: int
    """Of each component."""
    partitions: int
    beside: Sequence[Cuts]
    """What is of the tasks behind those of components."""

    def __call__(self, table: int, first: int, rows: pa.Table) -> list[tuple[int, Arrivals | int]]:
        batches, count = self.capture(table, first, rows)
        found: list[tuple[int, Arrivals | int]] = [(-1, count)]
        for number, component in enumerate(self.keyed):
            for event in component.events.keys() & batches.keys():
                if component.events[event] is None:
                    raise ValueError(f"{event} has no key: its rows cannot be read apart")
            of_tasks = by_task(component, batches, self.tasks, self.partitions)
            for task, arriving in enumerate(of_tasks, number * self.tasks):
                if own := {event: batch for event, batch in arriving.items() if len(batch)}:
                    found.append((task, own))
        first = len(self.keyed) * self.tasks
        for cuts in self.beside:
            found += ((first + task, own) for task, own in cuts(batches))
            first += cuts.tasks
        return found


def tasks_may_cut(before: int, count: int, tasks: int) -> bool:
    """Whether tasks may cut `before` partitions into `count`, or need not: what is of one task
    stays so."""
    return before == count or (before % tasks == 0 and count % before == 0)


def division(
    slots: int, rows: int, count: int, instances: int, largest: int, most: int, *, adopted: bool
) -> tuple[int, int]:
    """How many tasks there are, and into how many partitions the state is cut. So many `rows`
    arrive; so many `instances` are carried in `count` partitions, `largest` in one of these.

    There is a task a slot, and more where these would be too large for a worker's memory. That
    holds the rows, and what is carried in the partitions that they touch. All are touched by the
    first step, before the state is `adopted`, and where partitions are cut further; then each task
    cuts its own. A task has one partition at least, where there may be so many.

    Example: 1,000 rows arrive beside 50 million instances. In 65,536 partitions they touch less
    than a million of these: two slots have a task each. To cut 64 partitions so far takes 64.
    """
    partitions = wanted(count, FINER * largest, most)
    cut, touched = partitions > count, instances
    if adopted and not cut:
        touched = touched * min(rows, count) // count
    tasks = max(slots, -(-(rows + touched) // WORKER_ROWS))
    if cut and count >= slots:
        tasks = next(n for n in range(min(tasks, count), count + 1) if count % n == 0)
    while partitions < min(tasks, most):
        partitions = min(partitions * GROWTH, most)
    return min(tasks, partitions), partitions


def by_task(
    component: Component, arrivals: Arrivals, tasks: int, count: int
) -> list[dict[str, Batch]]:
    """What arrives for each task of a component that has `count` partitions (`_spread`): of keyed
    event types the occurrences of its own, of others all."""
    index: list[dict[str, Int64]] = [{} for _ in range(tasks)]
    for event in sorted(component.events.keys() & arrivals.keys()):
        batch, columns = arrivals[event], component.events[event]
        each = [np.arange(len(batch))] * tasks
        if columns is not None and len(batch):
            task = partitions(select(batch.table.take(batch.row), columns), count) % tasks
            order = np.argsort(task, kind="stable")
            each = np.split(order, np.cumsum(np.bincount(task, minlength=tasks))[:-1])
        for own, at in zip(index, each, strict=True):
            own[event] = at
    return [of_batches.cut({event: arrivals[event] for event in own}, own) for own in index]
