"""Threads that run entries beside the loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue

from tidegate.engine.core.entries import Outcome
from tidegate.engine.core.text.logs import thread_of

_Task = tuple[Callable[[], Sequence[Outcome]], Future[Sequence[Outcome]]]


class Crew:
    """At most `size` threads, made when needed. They are daemons: unlike a pool of the standard
    library, a thread that hangs in a statement does not keep the process from ending."""

    def __init__(self, name: str, size: int) -> None:
        self.size = size
        self._name = name
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._made = 0
        self._idle = threading.Semaphore(0)

    def submit(self, call: Callable[[], Sequence[Outcome]]) -> Future[Sequence[Outcome]]:
        """Run the call in a thread, once one is free."""
        future: Future[Sequence[Outcome]] = Future()
        self._tasks.put((call, future))
        if not self._idle.acquire(blocking=False) and self._made < self.size:
            self._made += 1
            thread_of(self._work, name=f"{self._name}-{self._made}").start()
        return future

    def close(self) -> None:
        """End each thread after its current call."""
        for _ in range(self._made):
            self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            call, future = task
            try:
                found = call()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(found)
            self._idle.release()
