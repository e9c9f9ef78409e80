"""Strikes. A text is stored before it runs. If it ends or stalls Spark, that is a strike."""

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
        """`spark-lost` where Java or its context has ended, as an error says or Spark itself."""
        ...

    def overrun(self) -> tuple[bool, EngineError | None]:
        """After a text has outlasted its deadline: whether tasks of it are left running that nobody
        can end, in a Spark that is not the engine's; and `spark-lost` where so many tasks are left
        running in the engine's own Spark that it must be started again."""
        ...


class Quarantine:
    """The suspects of one rulebook, for as long as its engine holds the lease: also while Spark is
    started again. May be used by several threads.

    `health`: of the Spark that is used now. `most`: a text with so many strikes is run no more at
    all, whatever it is run for, until its rule is enabled anew or its text is another
    (`strikes_max`). `stopped`: whether the engine is being stopped; whoever does that may end Java,
    too. Making it counts what ran when the engine before ended.
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
        # A table that could not be read has stopped the rulebook: by now it may be mended.
        self.forgive(*(key for s in self._known.values() if (key := s.suspect).kind == "read"))
        ended = records.begun()
        if ended:
            self._strike(ended, END, "the engine's process ended while it ran")

    def of(self, suspect: Suspect) -> Strikes:
        """What a suspect has done up to now."""
        with self._lock:
            return self._known.get(suspect.key, Strikes(suspect))

    def parts(self, suspect: Suspect) -> tuple[Strikes, ...]:
        """The slices of rows in which a `where` has struck."""
        with self._lock:
            whole = suspect.whole.key[:3]
            return tuple(s for key, s in self._known.items() if key[:3] == whole and key[3])

    def given_up(self, suspect: Suspect) -> str | None:
        """Why a text is run no more, whatever it is run for; None where it is."""
        known = self.of(suspect.whole)
        if known.count < self.most:
            return None
        return f"{suspect.told} is in quarantine: it {known.told} (strikes_max = {self.most})"

    def refuses(self, suspect: Suspect) -> str | None:
        """Why a suspect is not run for its item; None where it is."""
        known = self.of(suspect)
        said = f"{suspect.told} {known.told}" if known.condemns(suspect) else None
        return self.given_up(suspect) or said

    @contextmanager
    def run(self, *suspects: Suspect) -> Iterator[None]:
        """Run texts in Spark: alone where one of them is suspected. Their begin is stored first. A
        death of Java counts against all of them; whatever says so is raised as `spark-lost`."""
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
        """Count that Java ended while texts ran, unless the engine was asked to stop: a service
        manager that stops it stops its Java with it, and kills both where that takes long."""
        self._gate.died()
        if self._stopped():
            return
        with suppress(OutageError):  # it is known here, and stored with the next
            self._strike(suspects, DEATH, lost.message)

    def overran(self, suspects: Sequence[Suspect], reason: str) -> None:
        """Count that texts outlasted their deadline. Raises `spark-lost` where what is left running
        leaves no room for others."""
        stays, lost = self.health.overrun()
        if lost is not None:
            self._gate.replace()
        self._strike(suspects, OVERRUN, reason, twice=stays)
        if lost is not None:
            raise lost

    def forgive(self, *suspects: Suspect) -> None:
        """Forget what texts did, in all their parts: they have run cleanly."""
        with self._lock:
            wholes = {one.key[:3] for one in suspects}
            known = [s.suspect for key, s in self._known.items() if key[:3] in wholes]
            if known:
                self._records.forgive(known)
                for one in known:
                    del self._known[one.key]

    def rules(self, rules: Collection[str]) -> frozenset[str]:
        """Of these rules, those that enabling lets run texts again. What no single rule owns, a
        `where` or a sample, is released with any of them."""
        with self._lock:
            struck = [s.suspect for s in self._known.values() if s.count >= STRIKES_MAX]
        owners = {one.owner for one in struck}
        return frozenset(rule for rule in rules if rule in owners or None in owners)

    def release(self, rules: Collection[str]) -> None:
        """Forget what the texts of rules did: whoever enables a rule wants to see it run."""
        with self._lock:
            known = [s.suspect for s in self._known.values()]
        self.forgive(*(one for one in known if one.owner in {None, *rules}))

    @contextmanager
    def _begun(self, suspects: Sequence[Suspect]) -> Iterator[None]:
        """What runs is stored as begun, for as long as it runs. An end that cannot be stored is
        with the next begin; a process that ends here stores none."""
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
