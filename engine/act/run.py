"""Runs open entries, each in its turn, and settles them (G14, G16, G17)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.act.past import pass_over, way_past
from tidegate.engine.act.queues import Queues, Waiting
from tidegate.engine.act.signals import signals_of
from tidegate.engine.entries import Control, Entry, Fate, Outcome
from tidegate.engine.failpoints import failpoint
from tidegate.engine.ports import OutageError, Sink, SinkError
from tidegate.engine.values import Failure, Firings, Signal
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Retry, Rulebook

log = logging.getLogger(__name__)

OPEN = ("pending", "held")
LOST = frozenset({"lease-lost", "spark-lost"})  # what ends the engine, not an entry
_STOPPED_BY = {
    Fate.SEALED: "its seal stands in the target's log: it waits for a skip or a redrive",
    Fate.PASSED: "its marker was passed without it: another history wrote the target",
    Fate.UNKNOWN: "what became of it cannot be known: the target's log was cleaned, or cannot be "
    "read",
    Fate.ABSENT: "its statement left no commit",
}


class Outbox(Protocol):
    """The stored entries of one rulebook. Writes are made under the lease's epoch; they raise
    EngineError `lease-lost`."""

    def settle(self, outcome: Outcome) -> tuple[Entry, ...]:
        """Record an outcome and what it brings in one transaction (G22); its successors."""
        ...

    def answer(self, control: int, text: str) -> None:
        """Say why what an operator asked for changes nothing."""
        ...

    def entry(self, number: int) -> Entry | None: ...

    def firings(self, entry: Entry) -> Firings:
        """All firings of the entry's rule and bucket."""
        ...


class Present(Protocol):
    """What the rules say now, for entries that were stored before."""

    def entries(self, entry: Entry, firings: Firings) -> tuple[tuple[Entry, ...], Firings]:
        """The rule's condition asked again; the entries of its actions, for the firings that hold,
        and all of them, decided. Raises SinkError."""
        ...

    def renewed(self, entry: Entry) -> Entry | str:
        """The entry that takes another one's place; or why there is none."""
        ...


@dataclass(slots=True)
class Runner:
    """Runs the entries of one rulebook. Not for use by several threads.

    `check` raises EngineError `lease-lost` before an entry if the epoch is not ours any more (G21);
    `now` is the engine's clock, microseconds.
    """

    rulebook: Rulebook
    sink: Sink
    outbox: Outbox
    check: Callable[[], None]
    now: Callable[[], int]
    queues: Queues = field(default_factory=Queues, init=False)
    _fresh: dict[tuple[int, str], Firings] = field(default_factory=dict, init=False)

    def load(self, entries: Iterable[Entry]) -> None:
        """Begin with what the store has open: an earlier run may have begun any of it."""
        self.queues.clear()
        self._fresh.clear()
        self.queues.put(Waiting(entry, tried=True) for entry in entries)

    def add(self, entries: Iterable[Entry], firings: Iterable[Firings]) -> None:
        """Entries that were stored just now, with the firings of their bucket."""
        open_now = [entry for entry in entries if entry.state == "pending"]
        self.queues.put(map(Waiting, open_now))
        by_rule = {of_rule.rule: of_rule for of_rule in firings}
        self._fresh = {(e.bucket, e.rule): by_rule[e.rule] for e in open_now if e.rule in by_rule}

    def work(self, present: Present, stopped: Callable[[], bool] = lambda: False) -> int:
        """Run what is due, until nothing is or `stopped`, which is asked between two entries;
        returns how many entries were done.

        An entry that fails is due again after a pause that doubles; one that has used up its
        attempts is held, and tried again at the longest pause. Neither is waited for.
        Raises EngineError `lease-lost`, `spark-lost`, and OutageError where the store is away.
        """
        done = 0
        while not stopped() and (waiting := self.queues.next(self.now())) is not None:
            self.check()
            failpoint("action.before")
            outcome = self._attempt(waiting, present)
            failpoint("action.after_commit")
            done += self._apply(outcome)
            failpoint("action.between")
        if not stopped():
            self._fresh.clear()  # what is left is read from the store
        return done

    def carry_out(self, control: Control, present: Present) -> None:
        """Skip or redrive an entry, as an operator asked. Raises as `work` does."""
        number = int(control.subject)
        entry = self.outbox.entry(number)
        found: Outcome | str = f"there is no entry {number}"
        if entry is not None:
            found = pass_over(control, entry, self._sealed, present.renewed)
            failpoint("pass.sealed")
        if isinstance(found, str):
            log.warning("%s %s: %s", control.kind, control.subject, found)
            self.outbox.answer(control.id, found)
        else:
            self._apply(found)

    def _sealed(self, entry: Entry) -> Fate:
        """The fate of an entry that cannot land any more. One that nobody has sent yet needs no
        seal: it would pass the marker of an earlier one of its queue. Raises SinkError."""
        behind = any(
            w.entry.app_id == entry.app_id and w.entry.number < entry.number for w in self.queues
        )
        if entry.kind != "sql" or behind or (entry.state == "dead" and not entry.attempts):
            return Fate.SEALED
        firings = firings_of_entry(entry, self._firings(entry))
        fate = self.sink.fate(entry, firings)
        if fate is not Fate.ABSENT:
            return fate
        try:
            self.sink.seal(entry)
        except SinkError:
            fate = self.sink.fate(entry, firings)
            if fate in (Fate.ABSENT, Fate.UNKNOWN):
                raise
            return fate  # only the answer was lost
        return self.sink.fate(entry, firings)

    def _apply(self, outcome: Outcome) -> bool:
        """Settle an outcome and bring the queues up to it; whether the entry is done."""
        try:
            successors = self.outbox.settle(outcome)
        except EngineError as error:
            if error.code != "signal-conflict":
                raise
            outcome = self._failed(outcome.entry, Failure(str(error)))
            successors = self.outbox.settle(outcome)
        before = outcome.entry
        entry = replace(
            before,
            state=outcome.state,
            attempts=outcome.attempts,
            error=outcome.error,
            fate=outcome.fate,
        )
        self.queues.remove(entry)
        if outcome.state in OPEN:
            self.queues.put([Waiting(entry, self.now() + self._pause(entry), tried=True)])
        self.queues.put(Waiting(one) for one in successors if one.state in OPEN)
        if outcome.state == "held" and before.state != "held":
            log.error("%s", _held(entry, self.rulebook))
        return outcome.state == "done"

    def _attempt(self, waiting: Waiting, present: Present) -> Outcome:
        entry = waiting.entry
        try:
            firings = firings_of_entry(entry, self._firings(entry))
            return self._done(waiting, firings, present)
        except OutageError:
            raise
        except Exception as failure:  # whatever it is, the entry must not be passed over
            if isinstance(failure, EngineError) and failure.code in LOST:
                raise
            known = isinstance(failure, SinkError | EngineError)
            error = str(failure) if known else f"{type(failure).__name__}: {failure}"
            return self._failed(entry, Failure(error, getattr(failure, "details", None)))

    def _done(self, waiting: Waiting, firings: Firings, present: Present) -> Outcome:
        """The outcome of an attempt that did not fail. Raises SinkError."""
        entry = waiting.entry
        signals: tuple[Signal, ...] = ()
        successors: tuple[Entry, ...] = ()
        decided: Firings | None = None
        if entry.kind == "signal":
            signals = signals_of(entry, firings, self.sink, self.now())
            for event in dict.fromkeys(signal.event for signal in signals):
                log.info("%s raised %s, signals: %d", entry.rule, event, len(signals))
        elif entry.kind == "condition":
            successors, decided = present.entries(entry, firings)
        elif (fate := self._fate(waiting, firings)) is not Fate.EFFECT:
            return self._failed(entry, Failure(_STOPPED_BY[fate]), fate)
        attempts = entry.attempts + 1
        return Outcome(
            entry, "done", attempts, signals=signals, successors=successors, firings=decided
        )

    def _fate(self, waiting: Waiting, firings: Firings) -> Fate:
        """Run a statement unless it may have landed; only its log says what became of it."""
        entry = waiting.entry
        if waiting.tried and (fate := self.sink.fate(entry, firings)) is not Fate.ABSENT:
            return fate
        self.sink.run(entry, firings)
        return self.sink.fate(entry, firings)

    def _failed(self, entry: Entry, why: Failure, fate: Fate | None = None) -> Outcome:
        attempts = entry.attempts + 1
        stopped = fate in (Fate.SEALED, Fate.PASSED, Fate.UNKNOWN)
        held = stopped or attempts >= self._retry(entry).attempts
        state = "held" if held else "pending"
        if not held:
            told = "rule %s: entry %d will be tried again: %s"
            log.warning(told, entry.rule, entry.number, why.error)
        shown = fate.value if fate is not None and stopped else None
        return Outcome(entry, state, attempts, why.error, details=why.details, fate=shown)

    def _firings(self, entry: Entry) -> Firings:
        known = self._fresh.get((entry.bucket, entry.rule))
        return self.outbox.firings(entry) if known is None else known

    def _retry(self, entry: Entry) -> Retry:
        rule = self.rulebook.rules.get(entry.rule)
        return rule.retry if rule is not None else Retry()

    def _pause(self, entry: Entry) -> int:
        """Microseconds until an entry that failed is due again."""
        retry = self._retry(entry)
        if entry.state == "held":
            return retry.backoff_max_micros
        doubled: int = retry.backoff_min_micros * 2 ** (entry.attempts - 1)
        return min(doubled, retry.backoff_max_micros)


def firings_of_entry(entry: Entry, firings: Firings) -> Firings:
    """Of all firings of a rule in a bucket, those that an entry is for."""
    if entry.firing_ids is not None:
        chosen = pc.is_in(firings.hex_ids(), pa.array(entry.firing_ids, pa.string()))
    else:
        chosen = pc.not_equal(firings.firings["condition"], "failed")
    if pc.all(chosen).as_py():
        return firings
    kept = replace(firings, firings=firings.firings.filter(chosen))
    rows = pc.is_in(firings.relation["firing_id"], kept.hex_ids())
    return replace(kept, relation=firings.relation.filter(rows))


def _held(entry: Entry, rulebook: Rulebook) -> str:
    what = f" it writes {entry.target};" if entry.target else ""
    return (
        f"rule {entry.rule}: entry {entry.number} of bucket {entry.bucket} failed "
        f"{entry.attempts} times and holds the later entries of its rule:{what} {entry.error}\n"
        f"    {way_past(entry, rulebook.rules)}"
    )
