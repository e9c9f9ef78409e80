"""A bucket's step by component, in Spark's executors where a rule has a key (G26).

The state before a step and after it is that of one detector of all rules. So a bucket that the
driver steps may follow one that executors have stepped, and the other way round.

Example: `a ; b` per k, and `c` without a key. Two executors have a slot each: what waits for its b
is cut into four partitions, of which each executor steps two. The driver steps `c`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from tidegate.engine.core.ports import WORKER_ROWS, Executors
from tidegate.engine.core.state_parts import Shelf, loaded
from tidegate.engine.core.values import Batch, Carried, Firings, Stepped, Unread
from tidegate.engine.detect.events.state.loads import PartLoads
from tidegate.engine.detect.events.state.partitions import (
    GROWTH,
    wanted,
)
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.state.shares import reunited
from tidegate.engine.detect.events.step.component_detector import (
    Apart,
    ComponentDetector,
    Done,
    Fires,
    Shares,
    Task,
)
from tidegate.rules.model import Rulebook

FINER = 4
"""Executors' parts are so many times smaller than the driver's. A file has thousands of them, and a
task reads and writes all rows of those that it touches."""


class ComponentsStepped(NamedTuple):
    """A step, the number of rows that executors have read, what is carried in partitions that they
    have written to files, and the firings that they have made of detections; these are left out of
    the step then. `apart`: whether executors had anything to do."""

    stepped: Stepped
    rows: int = 0
    counted: PartLoads = MappingProxyType({})
    fired: tuple[Firings, ...] = ()
    apart: bool = False


class ComponentStep:
    """Steps all enabled rules of a rulebook by component. The state is cut into `count_max`
    partitions at most."""

    def __init__(
        self,
        book: Rulebook,
        activations: Mapping[str, int],
        lateness: Mapping[str, int],
        executors: Executors,
        count_max: int,
    ) -> None:
        self._apart = ComponentDetector(book, activations, self._map, count_max, lateness)
        self._executors = executors
        self._count_max = count_max
        self._adopted = False  # the first step touches all, and drops what others have left
        self._idle = False  # executors have nothing to do in this step

    def step(
        self,
        carried: Carried,
        batches: Mapping[str, Batch],
        watermark: int,
        parked: Collection[str] = (),
        limit: int | None = None,
    ) -> Stepped:
        """`Partitioned.step`, with `limit` timers in each task. Raises `RuleLimitError`."""
        return self.step_unread(carried, batches, watermark, parked, limit, None).stepped

    def step_unread(
        self,
        carried: Carried,
        batches: Mapping[str, Batch],
        watermark: int,
        parked: Collection[str],
        limit: int | None,
        unread: Unread | None,
        shelf: Shelf | None = None,
        fires: Fires | None = None,
    ) -> ComponentsStepped:
        """`step` over `unread` rows too, of which each occurrence has a key. `shelf`: where parts
        of what is carried lie in files. `fires`: makes firings of what executors detect. Raises as
        it does, and EngineError `state-apart`."""
        stored = tables = Parts.of(carried.tables)
        if not self._apart.may_stay_apart(tables):
            tables = Parts.of(loaded(reunited(tables, shelf).named(), shelf)).beside(stored.rest)
        shares = self._apart.divided(Carried(tables))
        self._idle = unread is None and self._nothing_happens(shares, batches, watermark)
        rows = sum(map(len, batches.values())) + (unread.estimate if unread else 0)
        tasks = 1 if self._idle else self._tasks(rows, tables)
        count = tables.count if self._idle else self._count(tables, tasks)
        counts: list[int] = []
        apart = unread and Apart(
            partial(self._executors.map_rows, unread.rows),
            unread.capture,
            counts,
            unread.found_max,
        )
        made = self._apart.step(
            shares,
            batches,
            watermark,
            parked=parked,
            limit=limit,
            partitions=count,
            tasks=tasks,
            apart=apart,
            shelf=shelf,
            adopted=self._adopted,
            fires=fires,
        )
        after = Parts.of(self._apart.united(made.shares, count, shelf, apart=True).tables)
        if shelf is not None:
            new = after.files - stored.files
            shelf.check(new.union(file.name for fired in made.fired for file in fired.files))
            after = after.moved(shelf)
        left = Carried(after, after.differing(stored))
        self._adopted = True
        stepped = Stepped(made.detections, left, made.watermark)
        return ComponentsStepped(stepped, sum(counts), made.counted, made.fired, not self._idle)

    def _nothing_happens(
        self, shares: Shares, batches: Mapping[str, Batch], watermark: int
    ) -> bool:
        """Whether a step changes nothing in any component: nothing arrives for it, and nothing in
        its partitions waits for the watermark."""
        keyed = zip(self._apart.components.keyed, shares.each, strict=False)
        return self._adopted and not any(
            any(len(batches[event]) for event in component.events.keys() & batches.keys())
            or Parts.of(share.tables).waiting(watermark, ())
            for component, share in keyed
        )

    def _map(self, call: Callable[[Task], Done], given: Sequence[Task]) -> Iterable[Done]:
        if self._idle:
            return [Done(watermark=task.watermark) for task in given]
        return self._executors.map(call, given)

    def _tasks(self, rows: int, tables: Parts) -> int:
        """How many tasks a component has, of whose rows so many arrive: one a slot, and more where
        these would be too large for a worker's memory. That holds the rows, and what is carried in
        the partitions that they touch. All are touched by the first step, and where they are cut
        further; then each task cuts its own.

        Example: 1,000 rows arrive beside 50 million instances. In 65,536 partitions they touch less
        than a million of these: two slots have a task each. To cut 64 partitions so far takes 64.
        """
        before, touched = tables.count, tables.instances
        cut = self._wanted(tables) > before
        if self._adopted and not cut:
            touched = touched * min(rows, before) // before
        tasks = max(self._executors.slots, -(-(rows + touched) // WORKER_ROWS))
        if cut and before >= self._executors.slots:
            tasks = next(n for n in range(min(tasks, before), before + 1) if before % n == 0)
        return tasks

    def _wanted(self, tables: Parts) -> int:
        return wanted(tables.count, FINER * tables.largest, self._count_max)

    def _count(self, tables: Parts, tasks: int) -> int:
        """Into how many partitions the state is cut: a task has one at least, where there may be so
        many."""
        count = self._wanted(tables)
        while count < min(tasks, self._count_max):
            count = min(count * GROWTH, self._count_max)
        return count
