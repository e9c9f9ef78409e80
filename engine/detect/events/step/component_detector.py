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
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import Batch, Captured, Carried, Detections, Int64
from tidegate.engine.detect.events.graph.components import Component, components
from tidegate.engine.detect.events.graph.search_limits import RuleLimitError
from tidegate.engine.detect.events.occurrences import batches as of_batches
from tidegate.engine.detect.events.state.partitions import count_of, partitions
from tidegate.engine.detect.events.state.shares import divided, of_partitions, united
from tidegate.engine.detect.events.step import detections
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.key_codes import select
from tidegate.engine.detect.events.step.partitioned_detector import Partitioned
from tidegate.rules.model import Rulebook


class Plan(NamedTuple):
    """What a detector is made of: the arguments of `Detector`."""

    book: Rulebook
    activations: Mapping[str, int]
    lateness: Mapping[str, int]

    def detector(self, rules: Collection[str]) -> Detector:
        return Detector(self.book, self.activations, lateness=self.lateness, only=rules)


class Task(NamedTuple):
    """A step of a component over some partitions; of `Detector.step`, what it is given."""

    rules: tuple[str, ...]
    tables: Mapping[str, bytes]
    arrivals: Mapping[str, Batch]
    watermark: int
    last: int
    parked: tuple[str, ...]
    limit: int | None
    partitions: int


class Done(NamedTuple):
    """What a task has left: detections with the occurrences alone that they refer to, what to carry
    on, how far it got, and the limit that a rule has reached, in place of these."""

    found: tuple[Detections, ...] = ()
    tables: Mapping[str, bytes] = {}
    watermark: int = 0
    limit: RuleLimitError | None = None


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
    """Rows that are read where the tasks run. `capture`: see `Unread`. `counts`: how many rows were
    read each time is put there."""

    mapper: RowsMapper
    capture: Callable[[int, int, pa.Table], Captured]
    counts: list[int]


class Shares(NamedTuple):
    """What is carried by component, the driver's last; and the rules that were not stepped."""

    each: tuple[Carried, ...] = ()
    parked: frozenset[str] = frozenset()


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
        self._run = partial(run, self._plan)

    def divided(self, carried: Carried) -> Shares:
        """What one detector of all rules carried, in shares."""
        detectors = [*self._own, self._rest.detector]
        return Shares(tuple(divided(carried, [d.graph for d in detectors])))

    def united(self, shares: Shares, partitions: int) -> Carried:
        """What one detector of all rules carries on from these, in so many partitions."""
        detectors = [*self._own, self._rest.detector]
        each = [_cut(*one, partitions) for one in zip(detectors, shares.each, strict=False)]
        return united(each, [d.asleep(shares.parked) for d in detectors])

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
    ) -> tuple[tuple[Detections, ...], Shares, int]:
        """`Detector.step` in `tasks` for each component, whose state is cut into `partitions`.
        Returns the detections of each rule, in the rulebook's order; what to carry on; the
        watermark that all have reached. Each task may fire `limit` timers: where it stops one, all
        are done again, up to the least that one has reached. `apart`: what arrives, too; none of
        it is the driver's. Raises `RuleLimitError`.
        """
        arrivals = of_batches.numbered(arrivals)
        last = watermark if last is None else last
        each = shares.each or (Carried(),) * (len(self._own) + 1)
        keyed = [
            _cut(detector, share, partitions)
            for detector, share in zip(self._own, each, strict=False)
        ]
        spread = _spread(partitions, tasks)
        while True:
            tasks_of = [
                Task(
                    component.rules,
                    _packed(of_partitions(share, own).tables),
                    arriving,
                    watermark,
                    min(last, watermark),
                    tuple(sorted(parked)),
                    limit,
                    partitions,
                )
                for component, share in zip(self.components.keyed, keyed, strict=True)
                for own, arriving in zip(
                    spread, by_task(component, arrivals, len(spread), partitions), strict=True
                )
            ]
            done = self._done(tasks_of, spread, partitions, apart)
            for one in done:
                if one.limit:
                    raise one.limit
            rest = self._rest.step(each[-1], arrivals, watermark, min(last, watermark), parked,
                                   limit)  # fmt: skip
            reached = min([rest.watermark, *(one.watermark for one in done)])
            if reached == watermark:
                break
            watermark = reached
            arrivals = {event: batch.until(reached) for event, batch in arrivals.items()}
        left = [Carried()] * len(keyed)
        for number in range(len(keyed)):
            mine = done[number * len(spread) : (number + 1) * len(spread)]
            left[number] = united([Carried(_unpacked(one.tables)) for one in mine])
        found = [*rest.detections, *(part for one in done for part in one.found)]
        return self._in_order(found), Shares((*left, rest.carried), frozenset(parked)), reached

    def _done(
        self,
        tasks: Sequence[Task],
        spread: Sequence[Collection[int]],
        partitions: int,
        apart: Apart | None,
    ) -> list[Done]:
        if apart is None:
            return [*self._mapper(self._run, tasks)]
        cut = Cut(apart.capture, self.components.keyed, len(spread), partitions)
        done, apart.counts[:] = apart.mapper(cut, partial(run_with, self._plan), tasks)
        return done

    def _in_order(self, found: Sequence[Detections]) -> tuple[Detections, ...]:
        by_rule: dict[str, list[Detections]] = {}
        for part in found:
            by_rule.setdefault(part.rule, []).append(part)
        order = [rule for rule in self._plan.book.rules if rule in by_rule]
        return tuple(detections.merged(by_rule[rule]) for rule in order)


def run(plan: Plan, given: Task) -> Done:
    """A task, wherever it runs. `plan` is what the detectors of all components are made of."""
    detector = plan.detector(given.rules)
    carried = Carried(_unpacked(given.tables))
    options = given.parked, given.limit, given.partitions
    try:
        made = detector.step(carried, given.arrivals, given.watermark, given.last, *options)
    except RuleLimitError as error:
        return Done(limit=error)
    found = tuple(map(detections.compact, made.detections))
    return Done(found, _packed(made.carried.tables), made.watermark)


def run_with(plan: Plan, given: Task, read: Sequence[Arrivals]) -> Done:
    """A task whose arrivals, but for those that it was given, were `read` where it runs."""
    arrivals = dict(given.arrivals)
    for event in sorted({event for part in read for event in part}):
        if event in arrivals and len(arrivals[event]):
            raise ValueError(f"{event} was read both here and by the driver")
        whole = of_batches.together([part[event] for part in read if event in part])
        arrivals[event] = whole.until(given.watermark)
    return run(plan, given._replace(arrivals=arrivals))


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


def _cut(detector: Detector, share: Carried, count: int) -> Carried:
    """A share in so many partitions."""
    anew = share.tables and count_of(share.tables.values()) != count
    return detector.cut_anew(share, count) if anew else share


def _spread(partitions: int, tasks: int) -> list[frozenset[int]]:
    """The partitions of each task."""
    tasks = min(tasks, partitions)
    return [frozenset(range(first, partitions, tasks)) for first in range(tasks)]


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


def _packed(tables: Mapping[str, pa.Table]) -> dict[str, bytes]:
    """Tables as Arrow streams: a slice has nothing of what it is cut from."""
    found = {}
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        found[name] = sink.getvalue().to_pybytes()
    return found


def _unpacked(packed: Mapping[str, bytes]) -> dict[str, pa.Table]:
    return {name: pa.ipc.open_stream(data).read_all() for name, data in packed.items()}
