"""What the inbox knows of its rulebook, at most a second old."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tidegate.engine.operate import status_of, the_rulebook
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import TidegateError
from tidegate.rules.model import Rulebook, Settings

log = logging.getLogger(__name__)
FRESH_SECONDS = 1.0
LOOK_SECONDS = 0.2  # programs that wait are told so much later, at most
Value = TypeVar("Value")


class Kept(Generic[Value]):
    """What a call in a thread answers, asked again once the answer is older than `seconds`; who
    asks meanwhile waits for the same one."""

    def __init__(self, call: Callable[[], Value], seconds: float) -> None:
        self._call = call
        self._seconds = seconds
        self._asked: asyncio.Future[Value] | None = None
        self._at = 0.0

    async def get(self) -> Value:
        """Raises what the call raises, to all who wait for it."""
        now = time.monotonic()
        if self._asked is None or (self._asked.done() and now - self._at > self._seconds):
            self._at = now
            self._asked = asyncio.ensure_future(asyncio.to_thread(self._call))
        return await asyncio.shield(self._asked)


class Source:
    """The rulebook that is `given` (of an engine that runs), or the one that the store keeps."""

    def __init__(self, store: SqlStore, name: str, given: Rulebook | None = None) -> None:
        self.store = store
        self.name = name
        self._given = given
        self._book = given or the_rulebook(store, name)
        self._registered = Kept(self._load, FRESH_SECONDS)
        self.status: Kept[dict[str, Any]] = Kept(self._status, FRESH_SECONDS)
        self.last_bucket = Kept(lambda: store.last_bucket(name), LOOK_SECONDS)

    @property
    def limits(self) -> Settings:
        return self._book.settings

    async def book(self) -> Rulebook:
        return self._book if self._given else await self._registered.get()

    def _load(self) -> Rulebook:
        """The rulebook as it was registered last; while that cannot be had, the one before."""
        try:
            kept = self.store.rulebooks().get(self.name)
            if kept is not None and kept.text != self._book.text:
                self._book = the_rulebook(self.store, self.name)
        except TidegateError as error:
            log.warning("the inbox goes on with the rulebook that it has: %s", error)
        return self._book

    def _status(self) -> dict[str, Any]:
        status = status_of(self.store, self._book)
        return {**status, "stage_seconds": self.store.stage_seconds(self.name)}
