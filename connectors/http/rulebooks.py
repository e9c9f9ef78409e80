"""The rulebooks of the inbox and their status, at most a second old."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from tidegate.connectors.http.inbox_limits import strictest
from tidegate.engine.control.rulebooks import the_rulebooks
from tidegate.engine.control.status import status_of
from tidegate.engine.store import SqlStore
from tidegate.rules.errors import TidegateError
from tidegate.rules.model import Rulebook, Settings

log = logging.getLogger(__name__)
FRESH_SECONDS = 1.0
LOOK_SECONDS = 0.2  # listeners learn of a bucket at most so much later
Value = TypeVar("Value")


class Kept(Generic[Value]):
    """The answer of a call that runs in a thread. It is asked again once it is older than
    `seconds`. All who ask at the same time wait for the same answer."""

    def __init__(self, call: Callable[[], Value], seconds: float) -> None:
        self._call = call
        self._seconds = seconds
        self._asked: asyncio.Future[Value] | None = None
        self._at = 0.0

    async def get(self) -> Value:
        """The answer. What the call raises is raised to all who wait for it."""
        now = time.monotonic()
        if self._asked is None or (self._asked.done() and now - self._at > self._seconds):
            self._at = now
            self._asked = asyncio.ensure_future(asyncio.to_thread(self._call))
        return await asyncio.shield(self._asked)


class Source:
    """The rulebooks that the inbox answers for, from the store: the one called `name`, or all.
    Raises EngineError `no-rulebook` where there is none, unless it `may_be_empty`."""

    def __init__(
        self, store: SqlStore, name: str | None = None, *, may_be_empty: bool = False
    ) -> None:
        self.store = store
        self._name = name
        self.known: dict[str, Rulebook] = {}
        if may_be_empty:
            self._load()
        else:
            self.known = the_rulebooks(store, name)
        self._registered = Kept(self._load, FRESH_SECONDS)
        self._last: dict[str, Kept[int]] = {}
        self.status: Kept[dict[str, dict[str, Any]]] = Kept(self._status, FRESH_SECONDS)

    @property
    def limits(self) -> Settings:
        return strictest(book.settings for book in self.known.values())

    async def books(self) -> Mapping[str, Rulebook]:
        return await self._registered.get()

    async def last_bucket(self, name: str) -> int:
        """The number of a rulebook's last bucket."""
        kept = self._last.get(name)
        if kept is None:
            ask = self.store.of(name).buckets.last
            kept = self._last.setdefault(name, Kept(ask, LOOK_SECONDS))
        return await kept.get()

    def _load(self) -> Mapping[str, Rulebook]:
        """The rulebooks as registered last. One that cannot be loaded stays as it was before."""
        try:
            kept = self.store.rulebooks()
        except TidegateError as error:
            log.warning("the inbox goes on with the rulebooks that it has: %s", error)
            return self.known
        for name, row in sorted(kept.items()):
            known = self.known.get(name)
            same = known is not None and row.says(known) and row.added == known.added
            if self._name in (None, name) and not same:
                try:
                    self.known = {**self.known, name: row.known()}
                except TidegateError as error:
                    log.warning("the inbox cannot take rulebook %s as it is now: %s", name, error)
        return self.known

    def _status(self) -> dict[str, dict[str, Any]]:
        return {
            name: {
                **status_of(self.store, book),
                "stage_seconds": self.store.of(name).status.stage_seconds(),
            }
            for name, book in self.known.items()
        }
