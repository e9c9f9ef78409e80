"""A detector whose components are stepped apart, partition by partition, anywhere; the rest here.

A task is a step of one component over some partitions. It is a value, and gives a value: it may run
in another process, on another machine. Occurrences that are broadcast go to every task.

Example: `a ; b` per k, 16 partitions, 2 tasks. A row a(k=7) arrives, and 7 is of partition 3: it
goes to the second task, which has the odd partitions, with what these carry. Both tasks are done,
and what they have left is put together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from tidegate.engine.core.ports import TooManyError
from tidegate.engine.core.state_parts import Shelf, judged, loaded
from tidegate.engine.core.values import Batch, Captured, Carried, Detections, Firings
from tidegate.engine.detect.events.graph.components import components
from tidegate.engine.detect.events.occurrences import batches as of_batches
from tidegate.engine.detect.events.state.loads import PartLoads
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.state.shares import (
    Sharing,
    after_tasks,
    united,
)
from tidegate.engine.detect.events.step import detections
from tidegate.engine.detect.events.step.component_task import (
    Arrivals,
    Cut,
    Cuts,
    Done,
    Fires,
    Packed,
    Plan,
    Task,
    by_task,
    run,
    tasks_may_cut,
)
from tidegate.engine.detect.events.step.detector import Detector
from tidegate.engine.detect.events.step.stratified_detector import (
    Detect,
    StratifiedDetector,
    shorter,
)
from tidegate.rules.model import Rulebook

Found = TypeVar("Found", Detections, Packed)


Mapper = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Runs a function on each of some tasks, in any order, and gives what each gave, in theirs."""
RowsMapper = Callable[
    [
        Callable[[int, int, pa.Table], Sequence[tuple[int, Arrivals | int]]],
        Callable[[Any, Sequence[Arrivals]], Any],
        Sequence[Any],
    ],
    tuple[list[Any], list[int]],
]
"""The same with rows that it reads itself (`engine.core.ports.Executors.map_rows`)."""


class Apart(NamedTuple):
    """Rows that are read where the tasks run. `capture`, `found_max`: see `Unread`. `counts`: how
    many rows were read each time is put there."""

    mapper: RowsMapper
    capture: Callable[[int, int, pa.Table], Captured]
    counts: list[int]
    found_max: int | None


class Beside(NamedTuple):
    """What is done in the same job beside the tasks of components: scripts.

    tasks  each is called with the arrivals that were read for it
    cuts   of these, one after the other
    done   takes what the tasks gave, and asks for what the driver's rules detect
    """

    tasks: Sequence[Any]
    cuts: Sequence[Cuts]
    done: Callable[[Sequence[Any], Detect], None]


def _nothing_between(_: Sequence[Any], detect: Detect) -> None:
    detect(0, {})


NOTHING_BESIDE = Beside((), (), _nothing_between)


class Shares(NamedTuple):
    """What is carried by component, the driver's last."""

    each: tuple[Carried, ...] = ()


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
        self._rest = StratifiedDetector(self._plan, count_max, {*self.components.rest})
        self._mapper = mapper

    @cached_property
    def _detectors(self) -> tuple[Detector, ...]:
        """Of all components, and of the strata of the driver's rules."""
        return (*self._own, *self._rest.detectors)

    @cached_property
    def _sharing(self) -> Sharing:
        digests = (component.digest for component in self.components.keyed)
        return Sharing([one.graph for one in self._detectors], (*digests, *self._rest.digests))

    def divided(
        self, carried: Carried, parked: Collection[str] = (), shelf: Shelf | None = None
    ) -> Shares:
        """What one detector of all rules carried, in shares for a step without some rules. `shelf`:
        see `Sharing.divided`."""
        return Shares(tuple(self._sharing.divided(carried, self.asleep(parked), shelf)))

    def asleep(self, parked: Collection[str]) -> list[frozenset[str]]:
        """Of each share the nodes, by digest, that are not stepped without some rules."""
        return [detector.asleep(parked) for detector in self._detectors]

    def united(
        self,
        shares: Shares,
        partitions: int,
        shelf: Shelf | None = None,
        *,
        apart: bool = False,
        before: Sequence[Carried] = (),
    ) -> Carried:
        """What one detector of all rules carries on from these, in so many partitions. `apart`:
        occurrences to which several components refer do not meet. `before`: as `shares.united` has
        it."""
        each = [
            _cut(*one, partitions, shelf) for one in zip(self._detectors, shares.each, strict=False)
        ]
        if apart:
            return self._sharing.beside_each_other(each, before)
        return united(each, before)

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
        beside: Beside = NOTHING_BESIDE,
    ) -> Step:
        """`Detector.step` in `tasks` for each component, whose state is cut into `partitions`.
        Each task may fire `limit` timers: where it stops one, all are done again, up to the least
        that one has reached. `apart`: what arrives, too; none of it is the driver's. `shelf`: of
        the parts that lie in files, and of those that tasks write. `adopted`: the state is left by
        a step of the same rulebook; then a task reads no partition that it does not touch.
        `fires`: makes firings of what tasks detect. `beside`: is done once, up to `watermark`.
        Raises `RuleLimitError`, `TooManyError`, and as `Shelf` does.
        """
        arrivals = of_batches.numbered(arrivals)
        last = watermark if last is None else last
        each = shares.each or (Carried(Parts()),) * len(self._detectors)
        tasks = min(tasks, partitions)
        keyed = [
            share
            if tasks_may_cut(Parts.of(share.tables).count, partitions, tasks)
            else (_cut(detector, share, partitions, shelf))
            for detector, share in zip(self._own, each, strict=False)
        ]
        given = Task((), Parts(), {}, watermark, last, tuple(sorted(parked)), limit, partitions,
                     adopted, shelf, apart.found_max if apart else None)  # fmt: skip
        others, whole = list[Any](), watermark
        while True:
            given = given._replace(watermark=watermark)
            asked = self._tasks(given, keyed, arrivals, tasks)
            done, made_beside = self._done(asked, tasks, partitions, apart, fires, beside)
            _check(asked, done)
            others, beside = others or made_beside, beside._replace(tasks=(), cuts=())
            between = partial(_between, partial(beside.done, others), arrivals)
            if watermark < whole:
                between = partial(shorter, between, watermark)
            rest = self._rest.step_shares(
                each[len(self._own) :], watermark, last, parked, limit, shelf, between
            )
            ends = [one.watermark for one in rest]
            reached = min([*ends, *(one.watermark for one in done)])
            if reached == watermark:
                break
            watermark = reached
            arrivals = {event: batch.until(reached) for event, batch in arrivals.items()}
        left = [
            after_tasks(share, [(one.tables, one.gone) for one in some])
            for share, some in zip(keyed, _in_turns(done, tasks), strict=True)
        ]
        found = [d for one in rest for d in one.detections] + [d for one in done for d in one.found]
        counted = {at: load for one in done for at, load in one.loads.items()}
        made = self._in_order([one for one in found if isinstance(one, Detections)])
        fired = self._in_order([one for one in found if isinstance(one, Packed)])
        del done, found  # what is merged is let go of
        return Step(
            tuple(map(detections.merged, made)),
            Shares((*left, *(one.carried for one in rest))),
            reached,
            counted,
            tuple(detections.merged_firings(_unpacked(parts), shelf) for parts in fired),
        )

    def _tasks(
        self, given: Task, keyed: Sequence[Carried], arrivals: Arrivals, count: int
    ) -> list[Task]:
        """So many tasks for each component. `given`: what all of them are given. `keyed`: what each
        component carries."""
        return [
            given._replace(
                rules=component.rules,
                tables=Parts.of(share.tables).of_task(number, count),
                arrivals=arriving,
            )
            for component, share in zip(self.components.keyed, keyed, strict=True)
            for number, arriving in enumerate(by_task(component, arrivals, count, given.partitions))
        ]

    def _done(
        self,
        given: Sequence[Task],
        tasks: int,
        partitions: int,
        apart: Apart | None,
        fires: Fires | None,
        beside: Beside,
    ) -> tuple[list[Done], list[Any]]:
        """What tasks give, and what those beside them do."""
        call, all_ = partial(run, self._plan, fires), [*given, *beside.tasks]
        if apart is None:
            done = [*self._mapper(call, all_)]
        else:
            cut = Cut(apart.capture, self.components.keyed, tasks, partitions, beside.cuts)
            done, apart.counts[:] = apart.mapper(cut, call, all_)
        return done[: len(given)], done[len(given) :]

    def _in_order(self, found: Sequence[Found]) -> list[list[Found]]:
        by_rule: dict[str, list[Found]] = {}
        for part in found:
            by_rule.setdefault(part.rule, []).append(part)
        return [by_rule[rule] for rule in self._plan.book.rules if rule in by_rule]


def _check(asked: Sequence[Task], done: Sequence[Done]) -> None:
    """Raises what has stopped a task, and `TooManyError` where all together detect too many."""
    for given, one in zip(asked, done, strict=True):
        if one.failed:
            raise judged(one.failed, given.tables, given.shelf)
    count = sum(one.detected for one in done)
    most = asked[0].found_max if asked else None
    if most is not None and count > most:
        raise TooManyError(count)


def _in_turns(done: Sequence[Done], tasks: int) -> Iterator[Sequence[Done]]:
    """What the tasks of each component have left."""
    return (done[first : first + tasks] for first in range(0, len(done), tasks))


def _between(done: Callable[[Detect], None], arrivals: Arrivals, detect: Detect) -> None:
    """Asks for what the driver's rules detect of what arrives, and of what scripts emit."""
    done(lambda stratum, shown: detect(stratum, {**arrivals, **shown}))


def _unpacked(parts: list[Packed]) -> list[Firings]:
    """The firings of one rule, in any order; each is taken away from `parts`."""
    return [parts.pop().firings for _ in range(len(parts))]


def _cut(detector: Detector, share: Carried, count: int, shelf: Shelf | None) -> Carried:
    """A share in so many partitions."""
    tables = Parts.of(share.tables)
    if not tables.groups or tables.count == count:
        return share
    made = detector.cut_anew(Carried(loaded(tables.cut.named(), shelf)), count)
    return Carried(Parts.of(made.tables).beside(tables.rest))
