"""The slots in which Spark runs tasks: which job groups wait for one, and how many are lost
(G13)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import lru_cache
from typing import Any

from pyspark.sql import SparkSession

from tidegate.connectors.delta.faults import SPARK_ERRORS
from tidegate.rules.errors import EngineError

SETTLE_SECONDS = 5.0  # cancelled tasks get so long to end


def slots_of(spark: SparkSession) -> Slots:
    """The slots of a session's context, one object for all its sessions."""
    return _known(spark.sparkContext.applicationId or "", spark.sparkContext)


@lru_cache(maxsize=4)
def _known(_: str, context: Any) -> Slots:
    return Slots(context)


class Slots:
    """Tasks and slots, as Spark's own status tracker counts them.

    Example, `local[2]`: a task in a regular expression that backtracks is cancelled and goes on.
    Its job is over, its stage still has an active task: `lost` is 1 of 2.
    """

    def __init__(self, context: Any) -> None:
        self._context = context
        self._count = int(context.defaultParallelism)
        self._lock = threading.Lock()
        self._left: dict[str, Future[Any] | None] = {}  # job group -> its call that goes on
        self.condemned: EngineError | None = None
        """Why this Spark will be ended; nothing more may start in it then."""

    @property
    def count(self) -> int:
        """How many there are now, or were when Spark ended: executors come and go."""
        with suppress(*SPARK_ERRORS):
            self._count = int(self._context.defaultParallelism)
        return self._count

    def queues(self, group: str) -> bool:
        """Whether the jobs of a group wait for their first slot: a job has begun, none of its tasks
        has, and other groups hold every slot."""
        try:
            running = [*self._stages(group, running=True)]
            if not running or any(active for active, _ in running):
                return False
            if any(ended for _, ended in running) or self._busy() < self.count:
                return False
            return self.lost < self.count  # if all are lost, none will ever be free
        except SPARK_ERRORS:  # Spark has ended, and the call with it
            return False

    def left(self, group: str, call: Future[Any] | None = None) -> bool:
        """Remember a group whose jobs were cancelled. Returns whether tasks of it still run.
        `call`: that of the group, if it still runs itself."""
        with self._lock:
            self._left[group] = call
        end = time.monotonic() + SETTLE_SECONDS
        while self._active(group):
            if time.monotonic() > end:
                return True
            time.sleep(0.1)
        return call is not None

    @property
    def lost(self) -> int:
        """How many slots are held by tasks that nobody can end. A cancelled call that still runs
        without a task, such as one that plans, keeps a core busy: it counts as one slot."""
        with self._lock:
            known = dict(self._left)
        held = {group: self._active(group) for group in known}
        with self._lock:
            for group, call in known.items():
                if not held[group] and (call is None or call.done()):
                    self._left.pop(group, None)
                elif call is not None and not call.done():
                    held[group] = max(1, held[group])
        return sum(held.values())

    def _active(self, group: str) -> int:
        try:
            return sum(active for active, _ in self._stages(group))
        except SPARK_ERRORS:
            return 0

    def _busy(self) -> int:
        tracker = self._context._jsc.sc().statusTracker()
        return sum(int(one.numRunningTasks()) for one in tracker.getExecutorInfos())

    def _stages(self, group: str, *, running: bool = False) -> Iterator[tuple[int, int]]:
        """Active and completed tasks of each stage of a group's jobs. A group has many jobs, few of
        which are `running`: the others are not asked for."""
        tracker = self._context._jsc.sc().statusTracker()
        jobs = {*tracker.getJobIdsForGroup(group)}
        for job in jobs & {*tracker.getActiveJobIds()} if running else jobs:
            found = tracker.getJobInfo(job)
            if not found.isDefined():
                continue
            for number in found.get().stageIds():
                stage = tracker.getStageInfo(number)
                if stage.isDefined():
                    known = stage.get()
                    yield int(known.numActiveTasks()), int(known.numCompletedTasks())
