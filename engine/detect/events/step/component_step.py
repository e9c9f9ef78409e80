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
from typing import Any, NamedTuple

from tidegate.engine.core.ports import Executors
from tidegate.engine.core.state_parts import Shelf
from tidegate.engine.core.values import Batch, Carried, Firings, Stepped, Unread
from tidegate.engine.detect.events.state.loads import PartLoads
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.detect.events.step.component_detector import (
    NOTHING_BESIDE,
    Apart,
    Beside,
    ComponentDetector,
    Shares,
)
from tidegate.engine.detect.events.step.component_task import Done, Fires, Task, division
from tidegate.rules.model import Rulebook


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
        beside: Beside = NOTHING_BESIDE,
    ) -> ComponentsStepped:
        """`step` over `unread` rows too, of which each occurrence has a key. `shelf`: where parts
        of what is carried lie in files. `fires`: makes firings of what executors detect.
        `beside`: is done in the same job. Raises as it does, and EngineError `state-apart`."""
        stored = Parts.of(carried.tables)
        shares = self._apart.divided(Carried(stored), parked, shelf)
        self._idle = unread is None and self._nothing_happens(shares, batches, watermark, parked)
        rows = sum(map(len, batches.values())) + (unread.estimate if unread else 0)
        tasks, count = (1, stored.count) if self._idle else division(
            self._executors.slots, rows, stored.count, stored.instances, stored.largest,
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
            beside=beside,
        )
        after = Parts.of(
            self._apart.united(made.shares, count, shelf, apart=True, before=shares.each).tables
        )
        if shelf is not None:
            after = after.shelved(stored, shelf)
            shelf.check({file.name for fired in made.fired for file in fired.files})
        left = Carried(after, after.differing(stored))
        self._adopted = True
        stepped = Stepped(made.detections, left, made.watermark)
        busy = not self._idle or len(beside.tasks) > 0
        return ComponentsStepped(stepped, sum(counts), made.counted, made.fired, busy)

    def _nothing_happens(
        self,
        shares: Shares,
        batches: Mapping[str, Batch],
        watermark: int,
        parked: Collection[str],
    ) -> bool:
        """Whether a step changes nothing in any component: nothing arrives for it, and nothing in
        its partitions waits for the watermark."""
        asleep = self._apart.asleep(parked)
        keyed = zip(self._apart.components.keyed, shares.each, asleep, strict=False)
        return self._adopted and not any(
            any(len(batches[event]) for event in component.events.keys() & batches.keys())
            or Parts.of(share.tables).waiting(watermark, {"node:" + digest for digest in own})
            for component, share, own in keyed
        )

    def _map(self, call: Callable[[Any], Any], given: Sequence[Any]) -> Iterable[Any]:
        if not self._idle:
            return self._executors.map(call, given)
        beside = [one for one in given if not isinstance(one, Task)]
        made = iter(self._executors.map(call, beside) if beside else ())
        return [
            Done(watermark=one.watermark) if isinstance(one, Task) else next(made) for one in given
        ]
