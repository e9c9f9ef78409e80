"""Counts strikes. A text is stored before it runs. If it ends or stalls Spark, it gets a strike."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.ledger import Suspects
from tidegate.engine.core.ports import OutageError
from tidegate.engine.core.suspect import DEATH, END, OVERRUN, STRIKES_MAX, Strikes, Suspect
from tidegate.engine.quarantine.turns import Gate
from tidegate.rules.errors import EngineError

log = logging.getLogger(__name__)
Key = tuple[str, str, str, str]


class Health(Protocol):
    """Whether Spark is fit to run something."""

    def lost(self, error: BaseException | None = None) -> EngineError | None:
        """The error `spark-lost` if Java or its context has ended, by what `error` or Spark
        says."""
        ...

    def overrun(self) -> tuple[bool, EngineError | None]:
        """Called after a text has overrun its deadline. First: whether tasks of it go on that
        cannot be ended, in a Spark that is not the engine's. Second: the error `spark-lost`, if so
        many tasks go on in the engine's own Spark that it must be started again."""
        ...


class Quarantine:
    """The suspects of one rulebook. It lives as long as the engine holds the lease, also across
    restarts of Spark. For use by several threads.

    `health`: of the current Spark. `most` (`strikes_max`): a text with so many strikes is not run
    any more, for any item, until its rule is enabled again or its text changes. `stopped`: whether
    the engine is being stopped; then the end of Java is no strike. The constructor gives a strike
    to the texts that ran when the last engine ended.
    """

    def __init__(
        self,
        records: Suspects,
        gate: Gate,
        health: Health,
        most: int,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._records = records
        self._gate = gate
        self.health, self.most = health, most
        self._stopped = stopped
        self._lock = threading.RLock()
        self._running: list[Suspect] = []
        self._known: dict[Key, Strikes] = {s.suspect.key: s for s in records.strikes()}
        # A table that could not be read has stopped the rulebook. The cause may be gone by now.
        self.forgive(*(key for s in self._known.values() if (key := s.suspect).kind == "read"))
        ended = records.begun()
        if ended:
            self._strike(ended, END, "the engine's process ended while it ran")

    def of(self, suspect: Suspect) -> Strikes:
        """The strikes of a suspect."""
        with self._lock:
            return self._known.get(suspect.key, Strikes(suspect))

    def parts(self, suspect: Suspect) -> tuple[Strikes, ...]:
        """The slices of rows in which a `where` has strikes."""
        with self._lock:
            whole = suspect.whole.key[:3]
            return tuple(s for key, s in self._known.items() if key[:3] == whole and key[3])

    def given_up(self, suspect: Suspect) -> str | None:
        """Why a text is not run for any item; None if it may run."""
        known = self.of(suspect.whole)
        if known.count < self.most:
            return None
        return f"{suspect.told} is in quarantine: it {known.told} (strikes_max = {self.most})"

    def refuses(self, suspect: Suspect) -> str | None:
        """Why a suspect is not run for its item; None if it may run."""
        known = self.of(suspect)
        said = f"{suspect.told} {known.told}" if known.condemns(suspect) else None
        return self.given_up(suspect) or said

    @contextmanager
    def run(self, *suspects: Suspect) -> Iterator[None]:
        """A context in which texts run in Spark; alone if one of them is suspected. That they run
        is stored first. If Java dies, all of them get a strike, and the error is `spark-lost`."""
        alone = any(self.of(one).suspected or self.of(one.whole).suspected for one in suspects)
        with self._gate.turn(alone=alone, stopped=self._stopped) as replaced:
            if lost := self.health.lost():
                raise lost
            with self._begun(suspects):
                failpoint("suspect.begun")
                try:
                    yield
                except Exception as error:
                    lost = self.health.lost(error)
                    if lost is None:
                        raise
                    if not replaced():
                        self._died(suspects, lost)
                    raise lost from error
        self._gate.clean()

    def _died(self, suspects: Sequence[Suspect], lost: EngineError) -> None:
        """Give strikes for the end of Java, unless the engine was asked to stop: a service manager
        stops or kills Java with it."""
        self._gate.died()
        if self._stopped():
            return
        with suppress(OutageError):  # it is known here, and stored with the next
            self._strike(suspects, DEATH, lost.message)

    def overran(self, suspects: Sequence[Suspect], reason: str) -> None:
        """Give strikes for an overrun deadline. Raises `spark-lost` if the tasks that still run
        leave no room for others."""
        stays, lost = self.health.overrun()
        if lost is not None:
            self._gate.replace()
        self._strike(suspects, OVERRUN, reason, twice=stays)
        if lost is not None:
            raise lost

    def forgive(self, *suspects: Suspect) -> None:
        """Delete the strikes of texts that have run cleanly, in all their parts."""
        with self._lock:
            wholes = {one.key[:3] for one in suspects}
            known = [s.suspect for key, s in self._known.items() if key[:3] in wholes]
            if known:
                self._records.forgive(known)
                for one in known:
                    del self._known[one.key]

    def rules(self, rules: Collection[str]) -> frozenset[str]:
        """The rules among these with texts in quarantine, which enabling would release. A text that
        no single rule owns, a `where` or a sample, is released with any rule."""
        with self._lock:
            struck = [s.suspect for s in self._known.values() if s.count >= STRIKES_MAX]
        owners = {one.owner for one in struck}
        return frozenset(rule for rule in rules if rule in owners or None in owners)

    def release(self, rules: Collection[str]) -> None:
        """Delete the strikes of the texts of rules that are enabled again."""
        with self._lock:
            known = [s.suspect for s in self._known.values()]
        self.forgive(*(one for one in known if one.owner in {None, *rules}))

    @contextmanager
    def _begun(self, suspects: Sequence[Suspect]) -> Iterator[None]:
        """A context in which texts are stored as running. If its end cannot be stored, the next
        begin does it. A process that ends inside leaves the record, so its successor sees it."""
        with self._lock:
            running = [*self._running, *suspects]
            self._records.begin(running)
            self._running = running
        ended = False
        try:
            yield
            ended = True
        except Exception:
            ended = True
            raise
        finally:
            with self._lock, suppress(Exception):
                for one in suspects:
                    self._running.remove(one)
                if ended:
                    self._records.begin(self._running)

    def _strike(
        self, suspects: Sequence[Suspect], kind: str, reason: str, *, twice: bool = False
    ) -> None:
        with self._lock:
            found: dict[Key, Strikes] = {}
            for suspect in suspects:
                for one in dict.fromkeys((suspect, suspect.whole)):
                    known = self.of(one).struck(one, kind, reason)
                    while twice and known.count < STRIKES_MAX:
                        known = known.struck(one, kind, reason)
                    found[one.key] = known
            self._known |= found  # also where the store is away: what it did is not forgotten
            left = [one for one in self._running if one.key not in found]
            self._records.strike([*found.values()], left)
        for one in suspects:
            log.warning("%s %s; %s", one.told, self.of(one).told, reason)
