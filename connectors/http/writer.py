"""Group commit: requests queue their signals, and one thread writes the queue, transaction after
transaction."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from tidegate.engine.store import SqlStore
from tidegate.engine.store.posts import IdConflict, Posted
from tidegate.rules.errors import EngineError

log = logging.getLogger(__name__)
GROUP_SIGNALS = 20_000  # a transaction with so many takes no further request
WAITING_SIGNALS_MAX = 200_000
PAUSE_SECONDS = 0.001  # between two transactions, so that another program's may begin
Answer = int | IdConflict | EngineError
Future = asyncio.Future[int | IdConflict]
Waiting = tuple[Posted, Future]


class FullError(Exception):
    """The queue is full: no more signals are taken."""


class Writer:
    """Writes requests durably, in the order in which they came. A transaction takes all requests
    that wait when it begins; each gets an answer of its own.

    `on_written` is called after each transaction. Times of receipt are by the store's clock, and
    differ: each request has a later one than the request before.
    """

    def __init__(self, store: SqlStore, on_written: Callable[[], None]) -> None:
        self._store = store
        self._on_written = on_written
        self._waiting: deque[Waiting] = deque()
        self._signals = 0  # that wait
        self._changed = threading.Condition()
        self._closed = False
        self._failing = False
        self._last = 0  # time of receipt
        self._thread = threading.Thread(target=self._run, name="inbox-writer", daemon=True)
        self._thread.start()

    def submit(self, posted: Posted) -> Future:
        """Queue a request, from an event loop. Its answer comes after its transaction. Raises
        FullError."""
        future: Future = asyncio.get_running_loop().create_future()
        with self._changed:
            if self._closed or self._signals > WAITING_SIGNALS_MAX:
                raise FullError
            self._waiting.append((posted, future))
            self._signals += len(posted.ids)
            self._changed.notify()
        return future

    def close(self) -> None:
        """Write what waits, then end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while group := self._group():
            answers = self._write([posted for posted, _ in group])
            _give(group, answers)
            time.sleep(PAUSE_SECONDS)

    def _group(self) -> list[Waiting]:
        """The requests of the next transaction; none once the writer is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            group: list[Waiting] = []
            count = 0
            while self._waiting and count < GROUP_SIGNALS:
                group.append(self._waiting.popleft())
                count += len(group[-1][0].ids)
            self._signals -= count
            return group

    def _write(self, requests: Sequence[Posted]) -> Sequence[Answer]:
        try:
            now = max(self._store.wall(), self._last + 1)
            self._last = now + len(requests) - 1
            received_at = range(now, self._last + 1)
            answers = self._store.raise_posted(requests, received_at)
        except EngineError as error:
            self._tell(error)
            return [error] * len(requests)
        except Exception as error:  # the thread has to live
            log.exception("the inbox cannot write")
            return [EngineError("store-failed", str(error))] * len(requests)
        self._tell(None)
        self._on_written()
        return answers

    def _tell(self, error: EngineError | None) -> None:
        """Log that writing begins to fail, and that it works again, each once."""
        if error is not None and not self._failing:
            log.error("the inbox cannot write: %s", error)
        elif error is None and self._failing:
            log.warning("the inbox can write again")
        self._failing = error is not None


def _give(group: Sequence[Waiting], answers: Sequence[Answer]) -> None:
    """Wake each event loop once, for all of its requests."""
    given = [(future, answer) for (_, future), answer in zip(group, answers, strict=True)]
    for loop in {future.get_loop() for future, _ in given}:
        pairs = [pair for pair in given if pair[0].get_loop() is loop]
        if not loop.is_closed():
            loop.call_soon_threadsafe(_set, pairs)


def _set(pairs: Sequence[tuple[Future, Answer]]) -> None:
    for future, answer in pairs:
        if future.done():  # its client has gone
            continue
        if isinstance(answer, EngineError):
            future.set_exception(answer)
        else:
            future.set_result(answer)
