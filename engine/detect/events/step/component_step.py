"""A bucket's step by component, in Spark's executors where a rule has a key (G26).

The state before a step and after it is that of one detector of all rules. So a bucket that the
driver steps may follow one that executors have stepped, and the other way round.

Example: `a ; b` per k, and `c` without a key. Two executors have a slot each: what waits for its b
is cut into four partitions, of which each executor steps two. The driver steps `c`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from tidegate.engine.core.ports import Executors
from tidegate.engine.core.state_parts import Shelf, loaded
from tidegate.engine.core.values import Batch, Carried, Firings, Stepped, Unread
from tidegate.engine.detect.events.state.loads import PartLoads
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.state.shares import reunited
from tidegate.engine.detect.events.step.component_detector import (
    NOTHING_BESIDE,
    Apart,
    Beside,
    ComponentDetector,
)
from tidegate.engine.detect.events.step.component_task import Fires, division
from tidegate.rules.model import Rulebook


class ComponentsStepped(NamedTuple):
    """A step, the number of rows that executors have read, what is carried in partitions that they
    have written to files, and the firings that they have made of detections; these are left out of
    the step then."""

    stepped: Stepped
    rows: int = 0
    counted: PartLoads = MappingProxyType({})
    fired: tuple[Firings, ...] = ()


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
        self._apart = ComponentDetector(book, activations, executors.map, count_max, lateness)
        self._executors = executors
        self._count_max = count_max
        self._adopted = False  # the first step touches all, and drops what others have left

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
        beside: Beside = NOTHING_BESIDE,
    ) -> ComponentsStepped:
        """`step` over `unread` rows too, of which each occurrence has a key. `shelf`: where parts
        of what is carried lie in files. `fires`: makes firings of what executors detect.
        `beside`: is done in the same job. Raises as it does, and EngineError `state-apart`."""
        stored = tables = Parts.of(carried.tables)
        if not self._apart.may_stay_apart(tables):
            tables = Parts.of(loaded(reunited(tables, shelf).named(), shelf)).beside(stored.rest)
        rows = sum(map(len, batches.values())) + (unread.estimate if unread else 0)
        tasks, count = division(
            self._executors.slots, rows, tables.count, tables.instances, tables.largest,
            self._count_max, adopted=self._adopted,
        )  # fmt: skip
        counts: list[int] = []
        apart = unread and Apart(
            partial(self._executors.map_rows, unread.rows),
            unread.capture,
            counts,
            unread.found_max,
        )
        made = self._apart.step(
            self._apart.divided(Carried(tables)),
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
            beside=beside,
        )
        after = Parts.of(self._apart.united(made.shares, count, shelf, apart=True).tables)
        if shelf is not None:
            after = after.shelved(stored, shelf)
            shelf.check({file.name for fired in made.fired for file in fired.files})
        left = Carried(after, after.differing(stored))
        self._adopted = True
        stepped = Stepped(made.detections, left, made.watermark)
        return ComponentsStepped(stepped, sum(counts), made.counted, made.fired)
