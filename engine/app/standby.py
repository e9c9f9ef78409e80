"""A standby: an engine that has prepared its start, and waits for another engine to end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from pyspark.sql import SparkSession

from tidegate.engine.app.parts import executors_beside, open_lake
from tidegate.engine.app.preconditions import check_clock
from tidegate.engine.app.tables import preparing
from tidegate.engine.core.policy import Policy
from tidegate.engine.core.ports import OutageError
from tidegate.engine.core.text.logs import doing
from tidegate.engine.store import SqlStore
from tidegate.engine.store.holder import this_holder
from tidegate.engine.store.lease import standby_of
from tidegate.rules.errors import EngineError, TidegateError
from tidegate.rules.model import Rulebook

log = logging.getLogger(__name__)
LOOK_SECONDS = 0.25  # between two looks at the other engine's lease


def took(take: Callable[[], object]) -> bool:
    """Whether `take` has taken the lease; False if another engine has it."""
    try:
        take()
    except EngineError as error:
        if error.code != "lease-held":
            raise
        return False
    return True


def warm_up(book: Rulebook, store: SqlStore, spark: SparkSession, policy: Policy) -> None:
    """Do once, for practice, all that a start does before its loop. Errors show now, and Java has
    compiled and read what the real start needs. Raises InputError, EngineError."""
    check_clock(store, book)
    kept = store.rulebooks().get(book.name) if store.of(book.name).buckets.last() else None
    with doing("checking tables and SQL"), ExitStack() as opened:
        lake = open_lake(book, kept, spark, (f"{store.id}_standby", None), policy, opened)
        preparing(lake.book, lake.analyst)(lake.schemas, ())
        executors_beside(lake)


def wait_for_end(
    book: Rulebook,
    store: SqlStore,
    take: Callable[[], object],
    waiting: threading.Event,
    stopped: threading.Event,
) -> None:
    """Wait until no engine runs the rulebook and `take` has taken its lease. `waiting` is set
    meanwhile. An outage of the store is waited out. Raises EngineError `standby-ended` once
    `stopped`."""
    place = _Place(book, store)
    told = away = False
    with place:
        try:
            while not stopped.is_set():
                try:
                    holder = store.of(book.name).lease.holder()
                    if holder is None and took(take):
                        if told:
                            log.info("taking over rulebook %s", book.name)
                        return
                    place.keep()
                    away = False
                except OutageError as error:
                    if not away:
                        log.warning("%s\n    the standby waits on", error.message)
                    away, holder = True, None
                if holder is not None and not told:
                    told = True
                    log.info("standby, ready to take over: %s runs %s", holder, book.name)
                waiting.set()
                stopped.wait(LOOK_SECONDS)
        finally:
            waiting.clear()
    raise EngineError("standby-ended", f"the standby of rulebook {book.name} was stopped")


def own_text(book: Rulebook, store: SqlStore, load: Callable[[], Rulebook]) -> Rulebook:
    """The rulebook to take over with. Where the other engine ran another text than `book`, the file
    is read again. If its text still differs, that is logged and the file's text is used."""
    kept = store.rulebooks().get(book.name)
    if kept is None or kept.says(book):
        return book
    try:
        found = load()
    except TidegateError as error:
        log.warning("goes on with the former rulebook, for the present one is wrong:\n%s", error)
        found = book
    if found.name != book.name:
        found = book
    if not kept.says(found):
        log.warning(
            "the engine before ran another text of rulebook %s (from %s); this one goes on with %s",
            book.name,
            kept.file or "a text",
            found.file or "its own",
        )
    return found


class _Place:
    """The place of a rulebook's first standby. It is a lease of its own, by which `status` knows
    the standby. Further standbys wait without it until it is free."""

    def __init__(self, book: Rulebook, store: SqlStore) -> None:
        self._name = standby_of(book.name)
        self._seconds = book.settings.lease_seconds
        self._store = store
        self._epoch: int | None = None
        self._due = 0.0

    def keep(self) -> None:
        """Take or renew the lease when it is time."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._seconds / 3
        try:
            if self._epoch is None:
                self._epoch = self._store.of(self._name).lease.acquire(this_holder(), self._seconds)
            else:
                self._store.of(self._name, self._epoch).lease.renew(self._seconds)
        except EngineError as error:
            if error.code not in ("lease-held", "lease-lost"):
                raise
            self._epoch = None

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        if self._epoch is not None:
            with suppress(EngineError):
                self._store.of(self._name, self._epoch).lease.release()
