"""Runs open entries in order, some of them at the same time, and settles them (G14-G18).

Example: two INSERTs into different tables and a MERGE of a later stage wait. `work` starts both
INSERTs on the crew. The first that ends is settled, then the second. Then the MERGE starts.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from tidegate.engine.act.attempt import Attempts, edge_signals, firings_of_entry
from tidegate.engine.act.executors import CurrentRules, Executor, done
from tidegate.engine.act.messages import fired_text
from tidegate.engine.act.queues import Queues, Waiting
from tidegate.engine.act.redrive import pass_over, way_past
from tidegate.engine.act.shared import SharedCommits
from tidegate.engine.core.entries import Control, Effect, Entry, Fate, Outcome
from tidegate.engine.core.event_names import Edge
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.ledger import Ledger
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.text.logs import RUNNING, begin, go_on
from tidegate.engine.core.values import Failure, Firings
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Rulebook

log = logging.getLogger(__name__)

OPEN = ("pending", "held")


class Hands(Protocol):
    """Runs calls, at most `size` at a time."""

    @property
    def size(self) -> int: ...

    def submit(self, call: Callable[[], Sequence[Outcome]]) -> Future[Sequence[Outcome]]: ...


@dataclass(slots=True)
class Runner:
    """Runs the entries of one rulebook. Its methods are called from one thread.

    `executors`: by kind of entry. `check`: raises EngineError `lease-lost` before an entry if the
    lease is lost (G21). `now`: the engine's clock, microseconds. `crew`: runs the attempts.
    `beside`: runs the attempts at webhooks, which wait for other machines. `aside`: runs those at
    other detached entries, for which nobody waits. `wake`: called when a detached attempt has
    ended. `effect`: the commit of an entry that is done, as its target's log has shown it.
    `shared`: runs entries in one commit that may share it; None: none may.
    """

    rulebook: Rulebook
    executors: Mapping[str, Executor]
    ledger: Ledger
    check: Callable[[], None]
    now: Callable[[], int]
    crew: Hands
    beside: Hands | None = None
    aside: Hands | None = None
    wake: Callable[[], None] = lambda: None
    effect: Callable[[Entry], Effect | None] = lambda _: None
    shared: SharedCommits | None = None
    attempts: Attempts = field(init=False)
    queues: Queues = field(default_factory=Queues, init=False)
    _running: dict[Future[Sequence[Outcome]], Sequence[Waiting]] = field(
        default_factory=dict, init=False
    )
    _began: dict[int, int] = field(default_factory=dict, init=False)  # when, by entry
    _fresh: dict[tuple[int, str], Firings] = field(default_factory=dict, init=False)
    _timed: dict[int, Entry] = field(default_factory=dict, init=False)  # with an alternative
    _looked_at: int = field(default=0, init=False)  # when `work` was called last

    def __post_init__(self) -> None:
        self.attempts = Attempts(self.rulebook, self.executors, self.ledger.outbox, self.now)

    def load(self, entries: Iterable[Entry]) -> None:
        """Take over the open entries of the store. An earlier run may have tried any of them, so
        their targets' logs are asked first. Attempts that still run are waited for. Held entries
        are tried at once, because the cause may be gone since."""
        wait(self._running)
        self._running.clear()
        self.queues.clear()
        self._fresh.clear()
        listed = list(entries)
        self._timed = {e.number: e for e in listed if e.otherwise_at is not None}
        self.queues.put(
            Waiting(e, 0 if e.state == "held" else e.progress.next_attempt_at, tried=True)
            for e in listed
            if e.state in OPEN
        )
        failpoint("queue.loaded")

    def add(self, entries: Sequence[Entry], firings: Iterable[Firings]) -> None:
        """Add entries that were stored just now, with the firings of their bucket."""
        self._put(entries)
        open_now = [entry for entry in entries if entry.state in OPEN]
        by_rule = {of_rule.rule: of_rule for of_rule in firings}
        self._fresh = {(e.bucket, e.rule): by_rule[e.rule] for e in open_now if e.rule in by_rule}

    def work(
        self,
        current: CurrentRules,
        stopped: Callable[[], bool] = lambda: False,
        *,
        patient: bool = False,
    ) -> int:
        """Run what is due, until nothing is left, or `stopped` (asked before each entry). Returns
        how many entries were done. Detached entries are started; `patient`: they are waited for,
        too.

        A failed entry is due again after a pause that doubles. An entry without further attempts is
        dead, or it is held and tried again at the longest pause. What becomes due during the call
        is left to the next call.
        Raises EngineError `lease-lost`, `spark-lost`, and OutageError if the store is away.
        """
        finished = tried = 0
        self._looked_at = self.now()
        while True:
            if not stopped():
                self._do_otherwise(current)
                self._start(current)
            awaited = [
                future
                for future, group in self._running.items()
                if patient or group[0].entry.turn.stage is not None
            ]
            if awaited:
                begin(RUNNING, tried + self.queues.count_due(self._looked_at), tried)
                go_on(RUNNING, len(self._running))
                wait(awaited, return_when=FIRST_COMPLETED)
            ended = [future for future in self._running if future.done()]
            if not ended:
                break
            outcomes = [one for future in ended for one in self._outcomes(future, current)]
            tried += sum(one.progress != one.entry.progress for one in outcomes)
            finished += self._settle(outcomes)
        if not stopped():
            self._fresh.clear()  # what is left is read from the store
        return finished

    @property
    def due(self) -> int | None:
        """When the next entry or alternative is due; None if there is none. Entries that were due
        at the last call are left out: they wait for another entry to end."""
        times = [e.otherwise_at for e in self._timed.values()]
        times.append(self.queues.next_due(self._looked_at))
        return min((at for at in times if at is not None), default=None)

    def carry_out(self, control: Control, current: CurrentRules) -> None:
        """Skip or redrive an entry, as an operator asked. Raises as `work` does."""
        number = int(control.subject)
        entry = self.ledger.outbox.entry(number)
        found: Outcome | str = f"there is no entry {number}"
        if entry is not None and number in {one.number for one in self._entries_running()}:
            found = f"entry {number} is being tried just now: ask again"
        elif entry is not None:
            found = pass_over(control, entry, self._sealed, current.renewed)
            failpoint("pass.sealed")
        if isinstance(found, str):
            log.warning("%s %s: %s", control.kind, control.subject, found)
            self.ledger.controls.answer(control.id, found)
        else:
            self._settle([self._told(found, current)])

    def purge(self, rule: str, current: CurrentRules) -> int:
        """Seal the open entries of a rule, and make them dead (G24). Entries that cannot be sealed
        stay open. Alternatives are dropped. Running attempts are waited for. Returns how many
        entries were closed. Raises as `work` does."""
        running = [
            future
            for future, group in self._running.items()
            if rule in {waiting.entry.rule for waiting in group}
        ]
        wait(running)
        if running:
            self._settle([one for future in running for one in self._outcomes(future, current)])
        for entry in [e for e in self._timed.values() if e.rule == rule]:
            self.ledger.outbox.do_otherwise(entry, ())
            del self._timed[entry.number]
        ended = 0
        for waiting in [w for w in self.queues if w.entry.rule == rule]:
            outcome = self._purged(waiting)
            if outcome is not None:
                self._settle([self._told(outcome, current)])
                ended += 1
        return ended

    def _told(self, outcome: Outcome, current: CurrentRules) -> Outcome:
        """The outcome of a skip, a redrive or a purge, with the signals for rules that watch the
        action."""
        entry = outcome.entry
        if not current.watched(entry.rule):
            return outcome
        own = firings_of_entry(entry, self._firings(entry))
        return self.attempts.told(outcome, own, current)

    def _purged(self, waiting: Waiting) -> Outcome | None:
        """The outcome of an entry that is purged; None if it could still land."""
        entry, fate = waiting.entry, Fate.SEALED
        if waiting.tried or entry.progress.attempts:
            try:
                fate = self._sealed(entry)
            except SinkError as error:
                log.error("rule %s: entry %d cannot be purged: %s", entry.rule, entry.number, error)
                return None
        if fate is Fate.EFFECT:
            return Outcome(entry, entry.progress.finished("done"))
        if fate is not Fate.SEALED:
            return None
        progress = entry.progress.finished("dead", "purged: its rule was disabled")
        return Outcome(entry, progress)

    def _start(self, current: CurrentRules) -> None:
        """Start the entries that may run now, as long as threads are free."""
        running = self._entries_running()
        busy = Counter(id(self._hands(group[0].entry)) for group in self._running.values())
        for waiting in self.queues.ready(self._looked_at, running):
            hands = self._hands(waiting.entry)
            if busy[id(hands)] >= hands.size:
                continue
            busy[id(hands)] += 1
            self.check()
            failpoint("action.before")
            group = self._group(waiting, running)
            given = [(one, self._firings(one.entry)) for one in group]
            for one, firings in given:
                self._begin(one.entry, firings, current)
                self._began[one.entry.number] = self.now()
                running.append(one.entry)
            future = hands.submit(partial(self._attempt, given, current))
            self._running[future] = group
            if waiting.entry.turn.stage is None:
                future.add_done_callback(lambda _: self.wake())

    def _entries_running(self) -> list[Entry]:
        return [waiting.entry for group in self._running.values() for waiting in group]

    def _group(self, waiting: Waiting, running: Collection[Entry]) -> Sequence[Waiting]:
        """An entry that is ready, and those that share its commit."""
        if self.shared is None:
            return [waiting]
        beside = partial(self.queues.beside, waiting, self._looked_at, running)
        return self.shared.group(waiting, beside)

    def _attempt(
        self, group: Sequence[tuple[Waiting, Firings]], current: CurrentRules
    ) -> Sequence[Outcome]:
        """One attempt at an entry, or at a group in one commit. What that has left undone is as it
        was: it is attempted alone, in its turn."""
        if self.shared is None or len(group) == 1:
            return [self.attempts.make(*group[0], current)]
        given = [(w.entry, firings_of_entry(w.entry, its)) for w, its in group]
        landed = self.shared.run(given)
        return [
            self.attempts.told(done(entry), its, current)
            if entry.number in landed
            else Outcome(entry, entry.progress)
            for entry, its in given
        ]

    def _hands(self, entry: Entry) -> Hands:
        if entry.kind == "webhook":
            return self.beside or self.crew
        return self.crew if entry.turn.stage is not None else self.aside or self.crew

    def _put(self, entries: Sequence[Entry]) -> None:
        """Put entries into the queues that were stored just now."""
        self._timed |= {e.number: e for e in entries if e.otherwise_at is not None}
        self.queues.put(Waiting(entry) for entry in entries if entry.state in OPEN)

    def _do_otherwise(self, current: CurrentRules) -> None:
        """Store the alternatives of entries that were not done in time. Each firing has one at most
        (G23)."""
        now = self.now()
        for entry in [e for e in self._timed.values() if (e.otherwise_at or 0) <= now]:
            if entry.number in self._timed:
                self.check()
                made = self.ledger.outbox.do_otherwise(entry, current.otherwise(entry))
                failpoint("otherwise.after")
                same = [n for n, e in self._timed.items() if e.same_set(entry)]
                for number in same:
                    del self._timed[number]
                if made:
                    told = "rule %s: entry %d was not done in time: its alternative is run too"
                    log.warning(told, entry.rule, entry.number)
                self._put(made)

    def _begin(self, entry: Entry, firings: Firings, current: CurrentRules) -> None:
        """Tell that an action begins, to the rules that watch it."""
        watched = current.watched(entry.rule)
        if watched and not entry.progress.attempts and entry.is_action:
            own = firings_of_entry(entry, firings)
            told = edge_signals(Edge.BEGIN_OF, entry, own, watched, self.now())
            self.ledger.signals.tell(told)

    def _outcomes(
        self, future: Future[Sequence[Outcome]], current: CurrentRules
    ) -> Sequence[Outcome]:
        del self._running[future]
        outcomes = future.result()
        failpoint("action.after_commit")
        return [one if one.answers is None else current.damped(one) for one in outcomes]

    def _sealed(self, entry: Entry) -> Fate:
        """Seal an entry. Returns its fate. An entry that was never sent needs no seal; a seal would
        even move the marker past an earlier entry of its queue. Raises SinkError, also where it may
        have been sent in one commit with such an entry."""
        firings = firings_of_entry(entry, self._firings(entry))
        own = [w for w in self.queues if w.entry.queue == entry.queue]
        tried = any(w.tried for w in own if w.entry.number == entry.number)
        before = [
            w.entry for w in own if w.entry.app_id == entry.app_id and w.entry.number < entry.number
        ]
        if self.shared is not None and tried and before:
            return self.shared.passed_over(entry, firings, before)
        if before or (entry.state == "dead" and not entry.progress.attempts):
            return Fate.SEALED
        return self.executors[entry.kind].seal(entry, firings)

    def _settle(self, outcomes: Sequence[Outcome]) -> int:
        """Settle outcomes, and update the queues. Returns how many entries are done."""
        now = self.now()
        outcomes = [self._recorded(outcome, now) for outcome in outcomes]
        try:
            successors = self.ledger.outbox.settle(outcomes)
        except EngineError as error:
            if error.code != "signal-conflict":
                raise
            if len(outcomes) > 1:
                return sum(self._settle([one]) for one in outcomes)
            refused = self._refused(outcomes[0].entry, str(error))
            outcomes = [replace(refused, begun_at=outcomes[0].begun_at, settled_at=now)]
            successors = self.ledger.outbox.settle(outcomes)
        for outcome in outcomes:
            self._bring_up_to(outcome)
        self._put(successors)
        for one in successors:
            if one.state == "dead":
                log.error("%s", _stopped(one, self.rulebook))
        failpoint("action.between")
        return sum(outcome.state == "done" for outcome in outcomes)

    def _recorded(self, outcome: Outcome, now: int) -> Outcome:
        """An outcome with when its attempt began and ended, and the commit that it made."""
        entry = outcome.entry
        begun_at = self._began.pop(entry.number, outcome.begun_at)
        if outcome.progress == entry.progress:
            return outcome  # a stop came before the attempt
        if outcome.state == "done" and outcome.effect is None:  # asked once, settled perhaps twice
            outcome = replace(outcome, effect=self.effect(entry))
        return replace(outcome, begun_at=begun_at, settled_at=now)

    def _refused(self, entry: Entry, why: str) -> Outcome:
        """The outcome of a signal whose id is taken by another."""
        firings = firings_of_entry(entry, self._firings(entry))
        return self.attempts.ended(self.attempts.failed(entry, Failure(why)), firings)

    def _bring_up_to(self, outcome: Outcome) -> None:
        before = outcome.entry
        entry = replace(
            before,
            progress=replace(outcome.progress, details=before.progress.details),
            firing_ids=outcome.firing_ids or before.firing_ids,
        )
        self.queues.remove(entry)
        if outcome.state not in (*OPEN, "dead"):
            self._timed.pop(entry.number, None)
        elif timed := self._timed.get(entry.number):
            self._timed[entry.number] = replace(timed, firing_ids=entry.firing_ids)
        if outcome.state in OPEN:
            self.queues.put([Waiting(entry, entry.progress.next_attempt_at, tried=True)])
        if before.kind == "condition" and outcome.firings is not None:
            log.info("%s %s", before.rule, fired_text(outcome.firings))
        if outcome.state in ("held", "dead") and before.state != outcome.state:
            log.error("%s", _stopped(entry, self.rulebook))

    def _firings(self, entry: Entry) -> Firings:
        known = self._fresh.get((entry.bucket, entry.rule))
        return self.ledger.outbox.firings(entry.bucket, entry.rule) if known is None else known


def _stopped(entry: Entry, rulebook: Rulebook) -> str:
    what = f" it writes {entry.target};" if entry.target else ""
    progress = entry.progress
    held = progress.state == "held"
    then = "holds the later entries of its rule" if held else "is dead; later ones go on"
    often = "once" if progress.attempts == 1 else f"{progress.attempts} times"
    return (
        f"rule {entry.rule}: entry {entry.number} of bucket {entry.bucket} failed "
        f"{often} and {then}:{what} {progress.error}\n"
        f"    {way_past(entry, rulebook.rules)}"
    )
