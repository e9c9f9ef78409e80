"""Runs open entries, each in its turn, some of them at the same time, and settles them (G14-G18).

Example: two INSERTs into different tables and a MERGE of a later stage wait. `work` starts both
INSERTs on the crew. The first that ends is settled, then the second. Then the MERGE starts.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.act.edges import BEGIN, END, FAILED, edge_signals
from tidegate.engine.act.executors import Executor, NoEffectError, Present, SomeFailedError
from tidegate.engine.act.past import pass_over, way_past
from tidegate.engine.act.queues import Queues, Waiting
from tidegate.engine.entries import Control, Entry, Fate, Outcome
from tidegate.engine.failpoints import failpoint
from tidegate.engine.ports import OutageError, SinkError
from tidegate.engine.values import Failure, Firings, Signal
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Retry, Rulebook

log = logging.getLogger(__name__)

OPEN = ("pending", "held")
LOST = frozenset({"lease-lost", "spark-lost"})  # what ends the engine, not an entry
_BESIDE = "webhook"  # the kind that has a crew of its own: it waits for others' machines


class Outbox(Protocol):
    """The stored entries of one rulebook. Writes are made under the lease's epoch; they raise
    EngineError `lease-lost`."""

    def settle(self, outcomes: Sequence[Outcome]) -> tuple[Entry, ...]:
        """Record outcomes and what they bring in one transaction (G22); their successors. Raises
        EngineError `signal-conflict`; nothing is recorded then."""
        ...

    def tell(self, signals: Sequence[Signal]) -> None:
        """Insert signals of the engine's own; those that are there already stay."""
        ...

    def answer(self, control: int, text: str) -> None:
        """Say why what an operator asked for changes nothing."""
        ...

    def entry(self, number: int) -> Entry | None: ...

    def firings(self, entry: Entry) -> Firings:
        """All firings of the entry's rule and bucket."""
        ...

    def do_otherwise(self, entry: Entry, made: Sequence[Entry]) -> tuple[Entry, ...]:
        """Store the alternative of an entry, unless that was done for its set of firings; the
        stored entries."""
        ...

    def dead_in_a_row(self, rule: str, limit: int) -> int:
        """How many of a rule's entries have died, `limit` at most, since one was done."""
        ...


class Hands(Protocol):
    """Runs calls, at most `size` at a time."""

    @property
    def size(self) -> int: ...

    def submit(self, call: Callable[[], Outcome]) -> Future[Outcome]: ...


@dataclass(slots=True)
class Runner:
    """Runs the entries of one rulebook. Its methods are called from one thread.

    `executors`: by kind of entry. `check` raises EngineError `lease-lost` before an entry if the
    epoch is not ours any more (G21). `now` is the engine's clock, microseconds. `crew` runs the
    attempts; `beside`, by default the same, those at webhooks. `wake` is called when an attempt
    has ended for which `work` did not wait.
    """

    rulebook: Rulebook
    executors: Mapping[str, Executor]
    outbox: Outbox
    check: Callable[[], None]
    now: Callable[[], int]
    crew: Hands
    beside: Hands | None = None
    wake: Callable[[], None] = lambda: None
    queues: Queues = field(default_factory=Queues, init=False)
    _running: dict[Future[Outcome], Waiting] = field(default_factory=dict, init=False)
    _fresh: dict[tuple[int, str], Firings] = field(default_factory=dict, init=False)
    _timed: dict[int, Entry] = field(default_factory=dict, init=False)  # with an alternative

    def load(self, entries: Iterable[Entry]) -> None:
        """Begin with what the store has open: an earlier run may have begun any of it. What still
        runs is waited for: what came of it is then asked of its target's log. What is held is tried
        at once: whoever starts anew may have mended it."""
        wait(self._running)
        self._running.clear()
        self.queues.clear()
        self._fresh.clear()
        listed = list(entries)
        self._timed = {e.number: e for e in listed if e.otherwise_at is not None}
        self.queues.put(
            Waiting(e, 0 if e.state == "held" else e.next_attempt_at, tried=True)
            for e in listed
            if e.state in OPEN
        )

    def add(self, entries: Iterable[Entry], firings: Iterable[Firings]) -> None:
        """Entries that were stored just now, with the firings of their bucket."""
        stored = list(entries)
        self._put(stored)
        open_now = [entry for entry in stored if entry.state in OPEN]
        by_rule = {of_rule.rule: of_rule for of_rule in firings}
        self._fresh = {(e.bucket, e.rule): by_rule[e.rule] for e in open_now if e.rule in by_rule}

    def work(
        self,
        present: Present,
        stopped: Callable[[], bool] = lambda: False,
        *,
        patient: bool = False,
    ) -> int:
        """Run what is due, until nothing is or `stopped`, which is asked before each entry; returns
        how many entries were done. Detached entries are started, but waited for only by the
        `patient`.

        An entry that fails is due again after a pause that doubles. One that has used up its
        attempts is dead, or held and tried again at the longest pause. Neither is waited for.
        Raises EngineError `lease-lost`, `spark-lost`, and OutageError where the store is away.
        """
        done = 0
        while True:
            if not stopped():
                self._do_otherwise(present)
                self._start(present)
            awaited = [f for f, w in self._running.items() if patient or w.entry.stage is not None]
            if awaited:
                wait(awaited, return_when=FIRST_COMPLETED)
            ended = [future for future in self._running if future.done()]
            if not ended:
                break
            done += self._settle([self._outcome(future) for future in ended])
        if not stopped():
            self._fresh.clear()  # what is left is read from the store
        return done

    @property
    def due(self) -> int | None:
        """When an entry is due again, or an alternative is to be done; None if neither. One that is
        due already waits for another to end."""
        times = [e.otherwise_at for e in self._timed.values() if e.otherwise_at is not None]
        again = self.queues.next_due(self.now())
        return min([*times, *([] if again is None else [again])], default=None)

    def carry_out(self, control: Control, present: Present) -> None:
        """Skip or redrive an entry, as an operator asked. Raises as `work` does."""
        number = int(control.subject)
        entry = self.outbox.entry(number)
        found: Outcome | str = f"there is no entry {number}"
        if entry is not None and number in {w.entry.number for w in self._running.values()}:
            found = f"entry {number} is being tried just now: ask again"
        elif entry is not None:
            found = pass_over(control, entry, self._sealed, present.renewed)
            failpoint("pass.sealed")
        if isinstance(found, str):
            log.warning("%s %s: %s", control.kind, control.subject, found)
            self.outbox.answer(control.id, found)
        else:
            self._settle([found])

    def _start(self, present: Present) -> None:
        """Start what may run now, as far as there are hands."""
        busy = Counter(w.entry.kind == _BESIDE for w in self._running.values())
        for waiting in self.queues.ready(self.now()):
            beside = waiting.entry.kind == _BESIDE
            hands = (self.beside if beside else None) or self.crew
            if busy[beside] >= hands.size:
                continue
            busy[beside] += 1
            self.check()
            failpoint("action.before")
            firings = self._firings(waiting.entry)
            self._begin(waiting.entry, firings, present)
            self.queues.start(waiting)
            future = hands.submit(partial(self._attempt, waiting, firings, present))
            self._running[future] = waiting
            if waiting.entry.stage is None:
                future.add_done_callback(lambda _: self.wake())

    def _put(self, entries: Iterable[Entry]) -> None:
        """Entries that were stored just now."""
        stored = list(entries)
        self._timed |= {e.number: e for e in stored if e.otherwise_at is not None}
        self.queues.put(Waiting(entry) for entry in stored if entry.state in OPEN)

    def _do_otherwise(self, present: Present) -> None:
        """Store the alternatives of the entries that were not done in time, once for a set of
        firings (G23)."""
        now = self.now()
        for entry in [e for e in self._timed.values() if (e.otherwise_at or 0) <= now]:
            if entry.number in self._timed:
                self.check()
                made = self.outbox.do_otherwise(entry, present.otherwise(entry))
                failpoint("otherwise.after")
                same = [n for n, e in self._timed.items() if e.same_set(entry)]
                for number in same:
                    del self._timed[number]
                log.warning(
                    "rule %s: entry %d was not done in time: its alternative is done",
                    entry.rule,
                    entry.number,
                )
                self._put(made)

    def _begin(self, entry: Entry, firings: Firings, present: Present) -> None:
        """Tell that an action begins, to the rules that watch it."""
        watched = present.watched(entry.rule)
        if watched and not entry.attempts and entry.kind != "condition" and not entry.alternative:
            own = firings_of_entry(entry, firings)
            self.outbox.tell(edge_signals(BEGIN, entry, own, watched, self.now()))

    def _outcome(self, future: Future[Outcome]) -> Outcome:
        self._running.pop(future)
        outcome = future.result()
        failpoint("action.after_commit")
        return outcome

    def _sealed(self, entry: Entry) -> Fate:
        """The fate of an entry that cannot land any more. One that nobody has sent yet needs no
        seal: it would pass the marker of an earlier one of its queue. Raises SinkError."""
        behind = any(
            w.entry.queue == entry.queue
            and w.entry.app_id == entry.app_id
            and w.entry.number < entry.number
            for w in self.queues
        )
        if behind or (entry.state == "dead" and not entry.attempts):
            return Fate.SEALED
        firings = firings_of_entry(entry, self._firings(entry))
        return self.executors[entry.kind].seal(entry, firings)

    def _settle(self, outcomes: Sequence[Outcome]) -> int:
        """Settle outcomes and bring the queues up to them; how many entries are done."""
        try:
            successors = self.outbox.settle(outcomes)
        except EngineError as error:
            if error.code != "signal-conflict":
                raise
            if len(outcomes) > 1:
                return sum(self._settle([one]) for one in outcomes)
            outcomes = [self._failed(outcomes[0].entry, Failure(str(error)))]
            successors = self.outbox.settle(outcomes)
        for outcome in outcomes:
            self._bring_up_to(outcome)
        self._put(successors)
        for one in successors:
            if one.state == "dead":
                log.error("%s", _stopped(one, self.rulebook))
        failpoint("action.between")
        return sum(outcome.state == "done" for outcome in outcomes)

    def _bring_up_to(self, outcome: Outcome) -> None:
        before = outcome.entry
        entry = replace(
            before,
            state=outcome.state,
            attempts=outcome.attempts,
            error=outcome.error,
            fate=outcome.fate,
            next_attempt_at=outcome.next_attempt_at,
            firing_ids=outcome.firing_ids or before.firing_ids,
        )
        self.queues.remove(entry)
        if outcome.state not in (*OPEN, "dead"):
            self._timed.pop(entry.number, None)
        if outcome.state in OPEN:
            self.queues.put([Waiting(entry, entry.next_attempt_at, tried=True)])
        if outcome.state in ("held", "dead") and before.state != outcome.state:
            log.error("%s", _stopped(entry, self.rulebook))

    def _attempt(self, waiting: Waiting, all_firings: Firings, present: Present) -> Outcome:
        """One attempt and what came of it; may run in any thread."""
        firings = firings_of_entry(waiting.entry, all_firings)
        outcome = self._tried(waiting, firings, present)
        watched = present.watched(waiting.entry.rule)
        if not watched or waiting.entry.kind == "condition" or waiting.entry.alternative:
            return outcome
        ends, fails = (
            edge_signals(edge, waiting.entry, firings, watched, self.now())
            for edge in (END, FAILED)
        )
        return replace(outcome, ends=ends, fails=fails)

    def _tried(self, waiting: Waiting, firings: Firings, present: Present) -> Outcome:
        entry, executor = waiting.entry, self.executors[waiting.entry.kind]
        try:
            return executor.attempt(waiting, firings, present)
        except NoEffectError as error:
            outcome = self._failed(entry, Failure(str(error)), error.fate)
        except SomeFailedError as error:
            outcome = self._some_failed(entry, error, firings)
        except OutageError:
            raise
        except Exception as failure:  # whatever it is, the entry must not be passed over
            if isinstance(failure, EngineError) and failure.code in LOST:
                raise
            known = isinstance(failure, SinkError | EngineError)
            said = str(failure) if known else f"{type(failure).__name__}: {failure}"
            outcome = self._failed(entry, Failure(said, getattr(failure, "details", None)))
        sealed = Fate.SEALED.value
        if outcome.state != "held" or outcome.fate not in (None, sealed) or self._rule_holds(entry):
            return outcome
        most = self.rulebook.settings.dead_in_a_row_max
        if self.outbox.dead_in_a_row(entry.rule, most) >= most:
            why = f"its rule is suspended, for the last {most} were dead (dead_in_a_row_max)"
            return replace(outcome, error=f"{outcome.error}; {why}")
        return self._dead(outcome, executor, firings)

    def _some_failed(self, entry: Entry, error: SomeFailedError, firings: Firings) -> Outcome:
        """The entry goes on with what may be tried again; what is done, and what never will be,
        become entries of their own. What holds its queue is kept together."""
        again, never = error.again, error.never
        if again and never and self._rule_holds(entry):
            again, never = again + never, ()
        failed = self._failed(entry, Failure(str(error), lasting=not again))
        due = max(failed.next_attempt_at, self.now() + int(error.after_seconds * 1_000_000))
        failed = replace(failed, next_attempt_at=due)
        left = again or never
        if len(left) == len(firings):
            return failed
        part = replace(entry, number=0, attempts=failed.attempts, details=None, next_attempt_at=0)
        ended = [one for one in firings.hex_ids().to_pylist() if one not in {*again, *never}]
        successors = []
        if ended:
            done = replace(part, firing_ids=tuple(ended), state="done", error=None)
            successors.append(done)
        if again and never:
            dead = replace(part, firing_ids=never, state="dead", error=error.lasting)
            successors.append(dead)
        return replace(failed, firing_ids=left, successors=tuple(successors))

    def _dead(self, outcome: Outcome, executor: Executor, firings: Firings) -> Outcome:
        """An entry that has used up its attempts, sealed (G18), perhaps by an earlier run of which
        nobody knows. It is held where it cannot be sealed."""
        if outcome.fate is not None:
            error = outcome.entry.error or outcome.error
            return replace(outcome, state="dead", error=error, fate=None, next_attempt_at=0)
        try:
            fate = executor.seal(outcome.entry, firings)
        except SinkError:
            return replace(outcome, error=f"{outcome.error}; held, for it cannot be sealed")
        if fate is Fate.EFFECT:
            return Outcome(outcome.entry, "done", outcome.attempts)
        if fate is not Fate.SEALED:
            return replace(outcome, fate=fate.value)
        return replace(outcome, state="dead", next_attempt_at=0)

    def _rule_holds(self, entry: Entry) -> bool:
        """Whether its rule wants an entry that cannot be done to hold the queue."""
        rule = self.rulebook.rules.get(entry.rule)
        return rule is not None and rule.on_dead == "hold"

    def _failed(self, entry: Entry, why: Failure, fate: Fate | None = None) -> Outcome:
        attempts, retry = entry.attempts + 1, self._retry(entry)
        stopped = fate in (Fate.SEALED, Fate.PASSED, Fate.UNKNOWN)
        held = stopped or why.lasting or attempts >= retry.attempts
        if not held:
            told = "rule %s: entry %d will be tried again: %s"
            log.warning(told, entry.rule, entry.number, why.error)
        shown = fate.value if fate is not None and stopped else None
        again = self.now() + _pause(entry.number, attempts, retry, held=held)
        state = "held" if held else "pending"
        return Outcome(
            entry,
            state,
            attempts,
            why.error,
            details=why.details,
            fate=shown,
            next_attempt_at=again,
        )

    def _firings(self, entry: Entry) -> Firings:
        known = self._fresh.get((entry.bucket, entry.rule))
        return self.outbox.firings(entry) if known is None else known

    def _retry(self, entry: Entry) -> Retry:
        rule = self.rulebook.rules.get(entry.rule)
        return rule.retry if rule is not None else Retry()


def _pause(number: int, attempts: int, retry: Retry, *, held: bool) -> int:
    """Microseconds until an entry that failed is due again. Up to a quarter of it is left out, by
    the entry and the attempt, so that what failed together is not tried together."""
    doubled: int = retry.backoff_min_micros * 2 ** min(attempts - 1, 40)
    whole = retry.backoff_max_micros if held else min(doubled, retry.backoff_max_micros)
    return int(whole * random.Random(f"{number}/{attempts}").uniform(0.75, 1))  # noqa: S311


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


def _stopped(entry: Entry, rulebook: Rulebook) -> str:
    what = f" it writes {entry.target};" if entry.target else ""
    held = entry.state == "held"
    then = "holds the later entries of its rule" if held else "is dead; later ones go on"
    return (
        f"rule {entry.rule}: entry {entry.number} of bucket {entry.bucket} failed "
        f"{entry.attempts} times and {then}:{what} {entry.error}\n"
        f"    {way_past(entry, rulebook.rules)}"
    )
