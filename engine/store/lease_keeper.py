"""Keeps a lease while an engine runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Self

from tidegate.engine.core.lifecycle import STARTING, Activity
from tidegate.engine.core.text.logs import thread_of
from tidegate.engine.store.holder import this_holder
from tidegate.engine.store.sqlstore import SqlStore
from tidegate.rules.errors import EngineError

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 60.0
WAIT_SECONDS = 1.0  # between two looks at a lease that another engine has


class LeaseKeeper:
    """Takes a rulebook's lease on entry, renews it in a thread, gives it back on exit.

    Entry waits up to `wait_seconds` for a lease that another engine has, or until `given_up` is
    set. Then it raises EngineError `lease-held`.

    The lease is renewed after a third of its time, and at least once a minute. `seconds`, its time,
    may be set meanwhile. Each renewal stores when the engine looked last.

    The lease is lost if another engine has taken it: `lost` is set. It is in doubt if it could not
    be renewed in time because the store is away: `check` fails until the store answers, and then
    says whether it is lost. In both cases the thread calls `on_loss`, once.
    """

    epoch: int

    def __init__(
        self,
        store: SqlStore,
        rulebook: str,
        seconds: int,
        on_loss: Callable[[EngineError], None] = lambda _: None,
        *,
        wait_seconds: float = 0,
        given_up: threading.Event | None = None,
    ) -> None:
        self._store = store
        self._rulebook = rulebook
        self.seconds = seconds
        self._on_loss = on_loss
        self._wait_seconds = wait_seconds
        self._given_up = given_up or threading.Event()
        self._ended = threading.Event()
        self._thread = thread_of(self._keep, name="lease")
        self._saying = threading.Lock()
        self._activity: Activity | None = None  # as it was said last
        self._told: Activity | None = None  # to the store, as far as that is known
        self._ending: str | None = None  # what is still done; None where no end was asked for
        self.lost: EngineError | None = None

    def __enter__(self) -> Self:
        self.epoch = self._acquired()
        self._lease = self._store.of(self._rulebook, self.epoch).lease
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self.lost is None:
            try:
                self._lease.release()
            except EngineError as failed:
                log.warning("the lease was not given back: %s", failed)

    def check(self) -> None:
        """Raise EngineError `lease-lost` if the lease was lost. It asks the store, because this
        process may have slept longer than the lease lasts."""
        self.raise_lost()
        self._lease.check()

    def raise_lost(self) -> None:
        """Raise EngineError `lease-lost` if this process knows of the loss, without the store."""
        if self.lost is not None:
            raise self.lost

    def say(self, activity: Activity) -> None:
        """Store what the engine does, if that is new. If the store is away, the next call does
        it."""
        with self._saying:
            self._activity = activity
            if self._ending is not None:
                self._ending = self._started_by()
            self._tell(self.activity)

    def at(self, doing: str) -> None:
        """Say that the engine does something that takes long; an empty text: it is over. For any
        thread."""
        with self._saying:
            self._tell(self.activity.at(doing) if doing else self.activity)

    def ends(self, doing: str = "") -> None:
        """Say that the engine was asked to stop, whatever `say` says from now on. `doing`: what it
        still does, by default what it does while it starts. For any thread."""
        with self._saying:
            self._ending = doing or self._started_by()
            self._tell(self.activity)

    def goes_on(self) -> None:
        """Say that the engine is not asked to stop any more."""
        with self._saying:
            if self._ending is not None:
                self._ending = None
                self._tell(self.activity)

    @property
    def activity(self) -> Activity:
        """What the engine does, by the last `say`. For any thread; it never waits."""
        said, ending = self._activity or Activity(STARTING), self._ending
        return said if ending is None else said.ending(ending)

    def _started_by(self) -> str:
        said = self._activity
        return said.doing if said is not None and said.state == STARTING else ""

    def _tell(self, activity: Activity) -> None:
        if activity != self._told and not self._ended.is_set():
            try:
                self._lease.say(activity)
                self._told = activity
            except EngineError:
                self._told = None

    def _acquired(self) -> int:
        end = time.monotonic() + self._wait_seconds
        told, lease = False, self._store.of(self._rulebook).lease
        while True:
            self._renewed = time.monotonic()
            try:
                return lease.acquire(this_holder(), self.seconds)
            except EngineError as error:
                left = end - time.monotonic()
                if error.code != "lease-held" or left <= 0 or self._given_up.is_set():
                    raise
                if not told:
                    log.info("waiting up to %.0f s: %s", left, error.message)
                    told = True
            self._given_up.wait(min(left, WAIT_SECONDS))

    def _keep(self) -> None:
        doubted = False
        while not self._ended.wait(min(self.seconds / 3, HEARTBEAT_SECONDS)):
            begun = time.monotonic()
            try:
                self._lease.renew(self.seconds, self._activity)
                self._renewed, doubted = begun, False
            except Exception as failure:  # whatever it is, the lease must not run out unnoticed
                error = failure
                if not isinstance(error, EngineError):
                    error = EngineError("store-failed", f"{type(failure).__name__}: {failure}")
                if error.code == "lease-lost":
                    self.lost = error
                    self._on_loss(error)
                    return
                log.warning("the lease was not renewed, trying again: %s", error.message)
                if begun - self._renewed >= self.seconds and not doubted:
                    doubted = True
                    self._on_loss(error)
