"""Executors and state files that fail as those of a cluster do. Each way is a point of the matrix:

    task.begun    an executor is killed before its task has done anything
    task.ended    an executor is killed when its task has written its files; or a copy of a slow
                  task was faster
    shuffle.read  the rows that were cut for a task are lost, and cut again
    job.ended     all answers of a job are lost
    disk.written  the disk of a state file is full
    disk.opened   a state file is torn, until somebody puts it back

Meanwhile the setting `detect`, the rules and the partitions change from round to round.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, product
from typing import Any

import pyarrow as pa
import pytest

from tests.simulate.judge import AnyStore
from tests.simulate.matrix import APART, KeptApart, Life
from tests.simulate.quick import loaded
from tests.support.executors import InProcess
from tidegate.engine.core.failpoints import FailpointError, failpoint
from tidegate.engine.detect.events.state.parts import Parts
from tidegate.engine.store import folder

POINTS = "task.begun task.ended shuffle.read job.ended disk.written disk.opened"
FEW = ", driver_carried_max: 1"  # with `auto`, more than one instance is for executors
MORE = "  more: {on: row ; told ; row, per: id}\n"
SEEN = ("driver: driver", "spark: executors", "auto: executors", "cut")
TRIES_MAX = 4  # of a task or of the rows for it, as in Spark
READS_TORN = 3  # a read, the look why it failed, and the second read


class LostRowsError(Exception):
    """The rows for a task are gone."""


class Task:
    """A call that is tried again when it fails. `reads`: the rows for it come from another
    stage."""

    def __init__(self, call: Callable[..., Any], *, reads: bool) -> None:
        self.call, self.reads = call, reads

    def __call__(self, *given: Any) -> Any:
        for _ in range(TRIES_MAX):
            try:
                failpoint("task.begun")
                if self.reads:
                    self._read()
                made = self.call(*given)
                failpoint("task.ended")
            except FailpointError:
                continue
            return made
        raise OSError("a task has failed so often")

    @staticmethod
    def _read() -> None:
        try:
            failpoint("shuffle.read")
        except FailpointError as lost:
            raise LostRowsError from lost


class Disturbed(InProcess):
    """Executors of which some are lost."""

    def map(self, call: Any, given: Any) -> Any:
        made = super().map(Task(call, reads=False), given)
        failpoint("job.ended")
        return made

    def map_rows(self, rows: Sequence[Any], cut: Any, call: Any, given: Any) -> Any:
        for _ in range(TRIES_MAX):
            try:
                made = super().map_rows(rows, cut, Task(call, reads=True), given)
            except LostRowsError:
                continue
            failpoint("job.ended")
            return made
        raise OSError("the rows for a task were lost so often")


class Changing(KeptApart):
    """Executors and files fail. From round to round another one detects, in other partitions, and
    a rule comes or goes. `seen`: how many buckets who detected, by the setting; how often parts
    were cut."""

    paused = Life.paused

    def __init__(self, store: AnyStore) -> None:
        self.changes = cycle(product((MORE, ""), ("spark", "driver", "spark", "auto"), (2, 1, 5)))
        self.seen = Counter[str]()
        super().__init__(store)
        self.executors_beside = Disturbed()

    def drain(self) -> list[int]:
        found = []
        while (report := self.loop.bucket()) is not None:
            found.append(report.firings)
            self.seen[f"{self.running.settings.detect}: {report.detected_by}"] += 1
            self.seen["cut"] += Parts.of(self.loop.state.carried.tables).count > 1
        return found

    def round(self) -> None:
        more, detect, self.executors_beside.slots = next(self.changes)
        self.book = loaded(APART.replace("detect: spark", f"detect: {detect}{FEW}") + more)
        self.restart()
        super().round()


def disturb_disk(patch: pytest.MonkeyPatch) -> None:
    """From now on a disk may be full, and a file torn."""
    created, opened, torn = folder.created, folder.opened, dict[str, int]()

    @contextmanager
    def made(file: str) -> Iterator[Any]:
        with created(file) as sink:
            yield sink
            try:
                failpoint("disk.written")
            except FailpointError as full:
                raise OSError(errno.ENOSPC, "No space left on device") from full

    def read(file: str) -> Any:
        try:
            failpoint("disk.opened")
        except FailpointError:
            torn[file] = READS_TORN
        if not torn.get(file):
            return opened(file)
        torn[file] -= 1
        with opened(file) as source:
            return pa.BufferReader(source.read(source.size() // 2))

    patch.setattr(folder, "created", made)
    patch.setattr(folder, "opened", read)
