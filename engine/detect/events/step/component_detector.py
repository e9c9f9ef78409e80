"""A detector whose components are stepped apart, partition by partition, anywhere; the rest here.

A task is a step of one component over some partitions. It is a value, and gives a value: it may run
in another process, on another machine. Occurrences that are broadcast go to every task.

Example: `a ; b` per k, 16 partitions, 2 tasks. A row a(k=7) arrives, and 7 is of partition 3: it
goes to the second task, which has the odd partitions, with what these carry. Both tasks are done,
and what they have left is put together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from tidegate.engine.core.ports import TooManyError
from tidegate.engine.core.state_parts import FilePart, Shelf, loaded, not_shared
from tidegate.engine.core.values import Batch, Captured, Carried, Detections, Firings, Int64, Load
from tidegate.engine.detect.events.graph.components import Component, components
from tidegate.engine.detect.events.occurrences import batches as of_batches
from tidegate.engine.detect.events.state.loads import PartLoads, counted_parts
from tidegate.engine.detect.events.state.partitions import (
    EVERY,
    partitions,
    place,
)
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.state.shares import (
    after_tasks,
    divided,
    kept_apart,
    may_stay_apart,
    several,
    united,
)
from tidegate.engine.detect.events.step import detections
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.key_codes import select
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook

Found = TypeVar("Found", Detections, Firings)


class Plan(NamedTuple):
    """What a detector is made of: the arguments of `Detector`."""

    book: Rulebook
    activations: Mapping[str, int]
    lateness: Mapping[str, int]

    def detector(self, rules: Collection[str]) -> Detector:
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

    found: tuple[Detections | Firings, ...] = ()
    tables: Parts = Parts()
    gone: frozenset[str] = frozenset()
    watermark: int = 0
    detected: int = 0
    loads: Mapping[tuple[tuple[str, ...], int], Load] = {}
    failed: EngineError | None = None


Fires = Callable[[Detections, Shelf], Detections | Firings]
"""Makes the firings of a rule's detections where these are, their rows in a file; or leaves them as
they are."""
Mapper = Callable[[Callable[[Task], Done], Sequence[Task]], Iterable[Done]]
"""Runs a function on each of some tasks, in any order, and gives what each gave, in theirs."""
Arrivals = Mapping[str, Batch]
RowsMapper = Callable[
    [
        Callable[[int, int, pa.Table], Sequence[tuple[int, Arrivals | int]]],
        Callable[[Task, Sequence[Arrivals]], Done],
        Sequence[Task],
    ],
    tuple[list[Done], list[int]],
]
"""The same with rows that it reads itself (`engine.core.ports.Executors.map_rows`)."""


class Apart(NamedTuple):
    """Rows that are read where the tasks run. `capture`, `found_max`: see `Unread`. `counts`: how
    many rows were read each time is put there."""

    mapper: RowsMapper
    capture: Callable[[int, int, pa.Table], Captured]
    counts: list[int]
    found_max: int | None


class Shares(NamedTuple):
    """What is carried by component, the driver's last; and the rules that were not stepped."""

    each: tuple[Carried, ...] = ()
    parked: frozenset[str] = frozenset()


class Step(NamedTuple):
    """The detections of each rule, in the rulebook's order; what to carry on; the watermark that
    all have reached; what is carried where tasks have written files; and the firings of those rules
    of which tasks have made them."""

    detections: tuple[Detections, ...]
    shares: Shares
    watermark: int
    counted: PartLoads
    fired: tuple[Firings, ...]


class ComponentDetector:
    """All enabled rules of a rulebook, by component."""

    def __init__(
        self,
        book: Rulebook,
        activations: Mapping[str, int],
        mapper: Mapper,
        count_max: int,
        lateness: Mapping[str, int] | None = None,
    ) -> None:
        """The driver's rules keep their state in `count_max` partitions at most."""
        self._plan = Plan(book, activations, lateness or {})
        graph = Detector(book, activations, lateness=self._plan.lateness).graph
        self.components = components(book, graph)
        self._own = [self._plan.detector(c.rules) for c in self.components.keyed]
        self._rest = Partitioned(self._plan.detector({*self.components.rest}), count_max)
        self._mapper = mapper

    @cached_property
    def _detectors(self) -> tuple[Detector, ...]:
        """Of all components, the driver's last."""
        return (*self._own, self._rest.detector)

    @cached_property
    def _several(self) -> frozenset[str]:
        return several([detector.graph for detector in self._detectors])

    @cached_property
    def _digests(self) -> tuple[str, ...]:
        return tuple(component.digest for component in self.components.keyed)

    def may_stay_apart(self, tables: Parts) -> bool:
        """Whether `divided` needs nothing of what is in some tables: they may lie in files."""
        return may_stay_apart(tables, self._digests, self._several)

    def divided(self, carried: Carried) -> Shares:
        """What one detector of all rules carried, in shares."""
        graphs = [detector.graph for detector in self._detectors]
        return Shares(tuple(divided(carried, graphs, self._digests, self._several)))

    def united(
        self,
        shares: Shares,
        partitions: int,
        shelf: Shelf | None = None,
        *,
        apart: bool = False,
    ) -> Carried:
        """What one detector of all rules carries on from these, in so many partitions. `apart`:
        occurrences to which several components refer do not meet."""
        each = [
            _cut(*one, partitions, shelf) for one in zip(self._detectors, shares.each, strict=False)
        ]
        if apart:
            named = zip(each, self._digests, strict=False)
            each = [*(kept_apart(*one, self._several) for one in named), *each[len(self._own) :]]
        return united(each, [d.asleep(shares.parked) for d in self._detectors])

    def step(
        self,
        shares: Shares,
        arrivals: Mapping[str, Batch],
        watermark: int,
        last: int | None = None,
        parked: Collection[str] = (),
        limit: int | None = None,
        partitions: int = 1,
        tasks: int = 1,
        apart: Apart | None = None,
        shelf: Shelf | None = None,
        adopted: bool = False,
        fires: Fires | None = None,
    ) -> Step:
        """`Detector.step` in `tasks` for each component, whose state is cut into `partitions`.
        Each task may fire `limit` timers: where it stops one, all are done again, up to the least
        that one has reached. `apart`: what arrives, too; none of it is the driver's. `shelf`: of
        the parts that lie in files, and of those that tasks write. `adopted`: the state is left by
        a step of the same rulebook; then a task reads no partition that it does not touch.
        `fires`: makes firings of what tasks detect. Raises `RuleLimitError`, `TooManyError`, and as
        `Shelf` does.
        """
        arrivals = of_batches.numbered(arrivals)
        last = watermark if last is None else last
        each = shares.each or (Carried(Parts()),) * (len(self._own) + 1)
        tasks = min(tasks, partitions)
        keyed = [
            share
            if _tasks_may_cut(share, partitions, tasks)
            else (_cut(detector, share, partitions, shelf))
            for detector, share in zip(self._own, each, strict=False)
        ]
        most = apart.found_max if apart else None
        while True:
            tasks_of = [
                Task(
                    component.rules,
                    Parts.of(share.tables).of_task(number, tasks),
                    arriving,
                    watermark,
                    min(last, watermark),
                    tuple(sorted(parked)),
                    limit,
                    partitions,
                    adopted,
                    shelf,
                    most,
                )
                for component, share in zip(self.components.keyed, keyed, strict=True)
                for number, arriving in enumerate(by_task(component, arrivals, tasks, partitions))
            ]
            done = self._done(tasks_of, tasks, partitions, apart, fires)
            for given, one in zip(tasks_of, done, strict=True):
                if one.failed:
                    raise _judged(one.failed, given)
            count = sum(one.detected for one in done)
            if most is not None and count > most:
                raise TooManyError(count)
            rest = self._rest.step(each[-1], arrivals, watermark, min(last, watermark), parked,
                                   limit, shelf)  # fmt: skip
            reached = min([rest.watermark, *(one.watermark for one in done)])
            if reached == watermark:
                break
            watermark = reached
            arrivals = {event: batch.until(reached) for event, batch in arrivals.items()}
        left = [
            after_tasks(
                share,
                [(one.tables, one.gone) for one in done[n * tasks : (n + 1) * tasks]],
            )
            for n, share in enumerate(keyed)
        ]
        found = [*rest.detections, *(part for one in done for part in one.found)]
        shares = Shares((*left, rest.carried), frozenset(parked))
        counted = {at: load for one in done for at, load in one.loads.items()}
        made = self._in_order([one for one in found if isinstance(one, Detections)])
        fired = self._in_order([one for one in found if isinstance(one, Firings)])
        del done, found  # what is merged is let go of
        return Step(
            tuple(map(detections.merged, made)),
            shares,
            reached,
            counted,
            tuple(detections.merged_firings(parts, shelf) for parts in fired),
        )

    def _done(
        self,
        given: Sequence[Task],
        tasks: int,
        partitions: int,
        apart: Apart | None,
        fires: Fires | None,
    ) -> list[Done]:
        if apart is None:
            return [*self._mapper(partial(run, self._plan, fires), given)]
        cut = Cut(apart.capture, self.components.keyed, tasks, partitions)
        done, apart.counts[:] = apart.mapper(cut, partial(run_with, self._plan, fires), given)
        return done

    def _in_order(self, found: Sequence[Found]) -> list[list[Found]]:
        by_rule: dict[str, list[Found]] = {}
        for part in found:
            by_rule.setdefault(part.rule, []).append(part)
        return [by_rule[rule] for rule in self._plan.book.rules if rule in by_rule]


def _judged(failed: EngineError, given: Task) -> EngineError:
    """Why a task failed. A file that it has not read may be there, and be seen by the driver alone.
    Raises as `Shelf.read` where it is not."""
    if failed.code == "state-file" and given.shelf is not None:
        given.shelf.read({n: p for n, p in given.tables.items() if isinstance(p, FilePart)})
        return not_shared(f"the engine reads it, but in an executor: {failed.message}")
    return failed


def run(plan: Plan, fires: Fires | None, given: Task) -> Done:
    """A task, wherever it runs. `plan` is what the detectors of all components are made of. `fires`
    makes firings where the shelf has files."""
    whole = plan.detector(given.rules)
    detector = Partitioned(whole, given.partitions, adopted=given.adopted)
    shelf = given.shelf
    try:
        made = detector.step(
            Carried(given.tables),
            given.arrivals,
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


def _compact(found: Detections, shelf: Shelf | None, fires: Fires | None) -> Detections | Firings:
    """What is sent of a rule's detections."""
    made = fires(found, shelf) if fires is not None and shelf is not None else found
    return made if isinstance(made, Firings) else detections.compact(made)


def run_with(plan: Plan, fires: Fires | None, given: Task, read: Sequence[Arrivals]) -> Done:
    """A task whose arrivals, but for those that it was given, were `read` where it runs."""
    arrivals = dict(given.arrivals)
    for event in sorted({event for part in read for event in part}):
        if event in arrivals and len(arrivals[event]):
            raise ValueError(f"{event} was read both here and by the driver")
        whole = of_batches.together([part[event] for part in read if event in part])
        arrivals[event] = whole.until(given.watermark)
    return run(plan, fires, given._replace(arrivals=arrivals))


@dataclass(frozen=True)
class Cut:
    """Makes occurrences of rows, and says which task each is of. It may be sent away. For the one
    who has sent it, it counts the rows."""

    capture: Callable[[int, int, pa.Table], Captured]
    keyed: Sequence[Component]
    tasks: int
    """Of each component."""
    partitions: int

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
        return found


def _cut(detector: Detector, share: Carried, count: int, shelf: Shelf | None) -> Carried:
    """A share in so many partitions."""
    tables = Parts.of(share.tables)
    if not tables.groups or tables.count == count:
        return share
    made = detector.cut_anew(Carried(loaded(tables.cut.named(), shelf)), count)
    return Carried(Parts.of(made.tables).beside(tables.rest))


def _tasks_may_cut(share: Carried, count: int, tasks: int) -> bool:
    """Whether tasks may cut a share into so many partitions: what is of one task stays so."""
    before = Parts.of(share.tables).count
    return before % tasks == 0 and count % before == 0


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
