"""One of the engines of a process: its thread, and what became of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from tidegate.engine.app.engine import Engine
from tidegate.engine.core.text.whose import speak_for
from tidegate.rules.errors import EngineError, TidegateError

log = logging.getLogger(__name__)
T = TypeVar("T")


class Member:
    """An engine that is opened, run and closed in one thread. Where there are `several`, what is
    logged in it names the rulebook, and its failure is logged at once; it is closed then."""

    def __init__(self, engine: Engine, *, several: bool, skip_held: bool) -> None:
        self.engine = engine
        self.error: Exception | None = None
        self.is_open = False
        self._ended = False  # it has nothing to do, and that is no failure
        self._several = several
        self._skip_held = skip_held
        self._name = engine.rulebook.name
        self._pool = ThreadPoolExecutor(1, f"engine-{self._name}")
        if several:
            self._pool.submit(speak_for, self._name)

    @property
    def waits(self) -> bool:
        """Whether it is a standby, ready, and another engine runs."""
        return self.engine.waiting.is_set()

    @property
    def starts(self) -> bool:
        """Whether it has not looked at its sources, and is to."""
        left = self._ended or self.waits
        return not (self.engine.looks or left)

    @property
    def is_over(self) -> bool:
        return self._ended or self.error is not None

    def open(self) -> Future[None]:
        return self._submit(self._open)

    def do(self, call: Callable[[Engine], T]) -> Future[T | None]:
        """Call it once the engine is open; None if it is not, or the call has failed."""
        return self._submit(lambda: call(self.engine))

    def close(self) -> None:
        """End the engine after the bucket in hand, and its thread."""
        self.engine.end()
        self._pool.submit(self._close).result()
        self._pool.shutdown()

    def _submit(self, call: Callable[[], T]) -> Future[T | None]:
        return self._pool.submit(self._guarded, call)

    def _guarded(self, call: Callable[[], T]) -> T | None:
        if self.is_over:
            return None
        try:
            return call()
        except Exception as error:
            self._end(error)
            return None

    def _open(self) -> None:
        self.engine.__enter__()
        self.is_open = True

    def _end(self, error: Exception) -> None:
        code = getattr(error, "code", "")
        with suppress(Exception):  # the reason is known
            self._close()
        if code == "standby-ended" or (code == "lease-held" and self._skip_held):
            if code == "lease-held":
                log.info("left alone: %s", getattr(error, "message", error))
            self._ended = True
            return
        self.error = error
        if self._several:
            known = isinstance(error, TidegateError)
            said = str(error) if known else f"{type(error).__name__}: {error}"
            log.error("rulebook %s has stopped: %s", self._name, said, exc_info=not known)

    def _close(self) -> None:
        if self.is_open:
            self.is_open = False
            self.engine.__exit__(None, None, None)


def worst_of(errors: list[Exception]) -> Exception:
    """An engine's failure before a wrong input."""
    return max(errors, key=lambda error: getattr(error, "exit_code", EngineError.exit_code))
