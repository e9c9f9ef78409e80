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

import pyarrow as pa

from tidegate.engine.core.ports import WORKER_ROWS, Executors
from tidegate.engine.core.state_parts import Shelf, files_of, loaded, moved
from tidegate.engine.core.values import Batch, Carried, Firings, Stepped, Unread
from tidegate.engine.detect.events.state.held_back import is_held
from tidegate.engine.detect.events.state.loads import PartLoads
from tidegate.engine.detect.events.state.partitions import (
    GROWTH,
    Seen,
    Tables,
    count_of,
    replaced,
    wanted,
)
from tidegate.engine.detect.events.state.shares import reunited
from tidegate.engine.detect.events.step.component_detector import (
    Apart,
    ComponentDetector,
    Fires,
    Shares,
)
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
        self._seen = Seen()
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
    ) -> ComponentsStepped:
        """`step` over `unread` rows too, of which each occurrence has a key. `shelf`: where parts
        of what is carried lie in files. `fires`: makes firings of what executors detect. Raises as
        it does, and EngineError `state-apart`."""
        stored = tables = carried.tables
        if not self._apart.may_stay_apart(tables):
            tables = loaded(reunited(tables, shelf), shelf)
        cut, held = _apart_from_held(tables)  # what is held back is in no partition
        tasks = self._tasks(unread)
        count = self._count(cut, tasks)
        counts: list[int] = []
        apart = unread and Apart(
            partial(self._executors.map_rows, unread.rows),
            unread.capture,
            counts,
            unread.found_max,
        )
        shares = self._apart.divided(Carried(cut))
        made = self._apart.step(
            _with_rest(shares, {**shares.each[-1].tables, **held}),
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
        rest, held = _apart_from_held(made.shares.each[-1].tables)
        whole = self._apart.united(_with_rest(made.shares, rest), count, shelf, apart=True)
        after = {**whole.tables, **held}
        if shelf is not None:
            new = files_of(after.values()) - files_of(stored.values())
            shelf.check(new.union(file.name for fired in made.fired for file in fired.files))
            after |= moved(after, shelf)
        left = Carried(*replaced(stored, stored, after))
        self._adopted = True
        stepped = Stepped(made.detections, left, made.watermark)
        return ComponentsStepped(stepped, sum(counts), made.counted, made.fired)

    def _tasks(self, unread: Unread | None) -> int:
        """How many tasks a component has: one a slot, and more where these would be too large for a
        worker's memory."""
        rows = unread.estimate if unread else 0
        return max(self._executors.slots, -(-rows // WORKER_ROWS))

    def _count(self, tables: Tables, tasks: int) -> int:
        """Into how many partitions the state is cut: a task has one at least, where there may be so
        many."""
        nodes = (p for p in self._seen.of(tables).values() if p.whole.startswith("node:"))
        count = wanted(count_of(tables.values()), nodes, self._count_max)
        while count < min(tasks, self._count_max):
            count = min(count * GROWTH, self._count_max)
        return count


def _apart_from_held(tables: Tables) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """The tables that are cut into partitions, and those of what is held back."""
    held = {name: table for name, table in tables.items() if is_held(name)}
    return {name: table for name, table in tables.items() if name not in held}, held


def _with_rest(shares: Shares, tables: Tables) -> Shares:
    """The shares with these tables as the driver's."""
    return shares._replace(each=(*shares.each[:-1], Carried(tables)))
