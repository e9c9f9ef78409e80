"""Calls that start Spark jobs, each in a thread of ours with a deadline. Cancelling them touches no
other job of the same Spark."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from tidegate.connectors.delta.slots import slots_of

T = TypeVar("T")

GRACE_SECONDS = 5  # for a call to come back once its jobs are cancelled
QUEUE_LOOK_SECONDS = 0.5  # how often a call that goes on is asked whether it waits for a slot
_AGAIN_SECONDS = 0.5  # a call may be between two jobs when they are cancelled


class OverrunError(Exception):
    """A call took longer than its deadline. Its jobs are cancelled, and those that it still starts.

    Java cannot stop a thread that ignores the cancellation, such as one in a regular expression
    that backtracks. Such tasks are `left` running: each holds a slot until it ends by itself.
    """

    def __init__(self, seconds: float, *, left: bool) -> None:
        self.left = left
        super().__init__(f"it took longer than {seconds:g} s")


class Jobs:
    """Runs calls, several at the same time if asked to. Each runs in a thread with a job group of
    its own; all of them share the job `tag`. Job groups that a user's own threads have set are
    neither used nor changed."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self.tag = f"tidegate-{uuid.uuid4().hex}"
        self.slots = slots_of(spark)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._running: set[Future[Any]] = set()
        self._made = 0

    def run(self, seconds: float, call: Callable[[], T]) -> T:
        """Returns or raises what the call does. Raises OverrunError after `seconds`.

        The clock runs while the call plans and while its tasks run. It stands still while the
        first task waits for a slot that others hold.
        """
        worker, task = self._worker(), Future[T]()
        with self._lock:
            self._running.add(task)
        worker.tasks.put((task, call))
        if self._in_time(worker, task, seconds):
            with self._lock:
                self._running.discard(task)
                self._idle.append(worker)
            return task.result()
        cancelled = threading.Thread(target=self._cancel_group, args=(worker, task), daemon=True)
        cancelled.start()
        if not _ends(task, GRACE_SECONDS):
            self.slots.left(worker.group, task)
            raise OverrunError(seconds, left=True)
        if (error := task.exception()) is not None:
            left = self.slots.left(worker.group)
            raise OverrunError(seconds, left=left) from error
        return task.result()

    def cancel(self) -> None:
        """Cancel all calls that run, and the jobs that they still start. Returns at once. May be
        called from any thread."""
        with self._lock:
            running = list(self._running)
        threading.Thread(target=self._cancel_tag, args=(running,), daemon=True).start()

    def close(self) -> None:
        """End the idle threads."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.tasks.put(None)

    def _in_time(self, worker: _Worker, task: Future[T], seconds: float) -> bool:
        """Whether a call ends before its deadline."""
        left, begun = seconds, time.monotonic()
        while not _ends(task, min(left, QUEUE_LOOK_SECONDS)):
            now = time.monotonic()
            if not self.slots.queues(worker.group):
                left -= now - begun
                if left <= 0:
                    return False
            begun = now
        return True

    def _worker(self) -> _Worker:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            self._made += 1
            return _Worker(self._context, self.tag, f"{self.tag}-{self._made}")

    def _cancel_group(self, worker: _Worker, task: Future[T]) -> None:
        with suppress(Exception):  # Spark itself may have ended
            while not task.done():
                self._context.cancelJobGroup(worker.group)
                wait([task], _AGAIN_SECONDS)
        wait([task])
        with self._lock:  # its tasks may run on: the next call gets another worker and job group
            self._running.discard(task)
        worker.tasks.put(None)

    def _cancel_tag(self, running: list[Future[Any]]) -> None:
        with suppress(Exception):
            while not all(task.done() for task in running):
                self._context.cancelJobsWithTag(self.tag)
                wait(running, _AGAIN_SECONDS)


def _ends(task: Future[Any], seconds: float) -> bool:
    """Whether a call ends within some seconds."""
    return bool(wait([task], seconds).done)


class _Worker:
    """A thread that runs task after task. py4j gives it a JVM thread of its own."""

    def __init__(self, context: Any, tag: str, group: str) -> None:
        self.group = group
        self.tasks: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._context, self._tag = context, tag
        threading.Thread(target=self._work, name=group, daemon=True).start()

    def _work(self) -> None:
        prepared = False
        while (given := self.tasks.get()) is not None:
            task, call = given
            if not prepared:
                with suppress(Exception):  # the task itself will tell that Spark is gone
                    self._context.setJobGroup(self.group, "tidegate", interruptOnCancel=True)
                    self._context.addJobTag(self._tag)
                    prepared = True
            try:
                task.set_result(call())
            except BaseException as error:
                task.set_exception(error)
            del given, task, call  # while it waits for another it holds no result
