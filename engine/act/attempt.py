"""One attempt at an entry, and what comes of it: done, tried again, dead or held (G16-G18)."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.act.executors import CurrentRules, Executor, NoEffectError, SomeFailedError
from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Entry, Fate, Outcome, Progress
from tidegate.engine.core.event_names import Edge, EventKey
from tidegate.engine.core.ledger import Outbox
from tidegate.engine.core.ports import LOST, OutageError, QuarantinedError, SinkError, StoppedError
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import ENGINE, Failure, Firings, Signal
from tidegate.rules.errors import EngineError
from tidegate.rules.model import Retry, Rulebook

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Attempts:
    """Makes attempts at the entries of one rulebook. For use by several threads.

    `executors`: by kind of entry. `now`: the engine's clock, microseconds.
    """

    rulebook: Rulebook
    executors: Mapping[str, Executor]
    outbox: Outbox
    now: Callable[[], int]

    def make(self, waiting: Waiting, all_firings: Firings, current: CurrentRules) -> Outcome:
        """Make one attempt. Returns its outcome. Raises OutageError if the store or a table is
        away, EngineError for what ends the engine. A stop before it began leaves the entry as it
        is."""
        firings = firings_of_entry(waiting.entry, all_firings)
        try:
            return self.told(self._tried(waiting, firings, current), firings, current)
        except StoppedError:
            return Outcome(waiting.entry, waiting.entry.progress)

    def told(self, outcome: Outcome, firings: Firings, current: CurrentRules) -> Outcome:
        """The outcome with the signals for rules that watch the action. `firings`: the entry's."""
        entry = outcome.entry
        watched = current.watched(entry.rule)
        if not watched or not entry.is_action:
            return outcome
        ends, fails = (
            edge_signals(edge, entry, firings, watched, self.now())
            for edge in (Edge.END_OF, Edge.FAILED)
        )
        return replace(outcome, ends=ends, fails=fails)

    def _tried(self, waiting: Waiting, firings: Firings, current: CurrentRules) -> Outcome:
        entry, executor = waiting.entry, self.executors[waiting.entry.kind]
        try:
            return executor.attempt(waiting, firings, current)
        except NoEffectError as error:
            outcome = self.failed(entry, Failure(str(error)), error.fate)
        except SomeFailedError as error:
            outcome = self._some_failed(entry, error, firings)
        except QuarantinedError as error:  # nothing waits for it, whatever `on_dead` says
            failed = self.failed(entry, Failure(str(error), error.details, lasting=True))
            return self._dead(failed, executor, firings)
        except OutageError:
            raise
        except Exception as failure:  # whatever it is, the entry must not be passed over
            if isinstance(failure, EngineError) and failure.code in LOST:
                raise
            known = isinstance(failure, SinkError | EngineError)
            said = str(failure) if known else f"{type(failure).__name__}: {failure}"
            outcome = self.failed(entry, Failure(said, getattr(failure, "details", None)))
        return self.ended(outcome, firings)

    def ended(self, outcome: Outcome, firings: Firings) -> Outcome:
        """The outcome of a failed attempt. An entry without further attempts is dead, unless its
        rule says `on_dead: hold`, or too many before it were dead in a row. `firings`: the
        entry's."""
        entry, executor = outcome.entry, self.executors[outcome.entry.kind]
        sealed = Fate.SEALED.value
        progress = outcome.progress
        held = progress.state == "held" and progress.fate in (None, sealed)
        if not held or self._rule_holds(entry):
            return outcome
        most = self.rulebook.settings.dead_in_a_row_max
        if self.outbox.dead_in_a_row(entry, most) >= most:
            why = f"its rule is suspended, for the last {most} were dead (dead_in_a_row_max)"
            return _with(outcome, error=f"{progress.error}; {why}")
        return self._dead(outcome, executor, firings)

    def _some_failed(self, entry: Entry, error: SomeFailedError, firings: Firings) -> Outcome:
        """The entry keeps the firings that may be tried again. The firings that are done become a
        done entry, those that never will be become a dead one. With `on_dead: hold` the failed
        firings stay together.

        Example: of firings 1 to 4, 1 was sent, 2 and 3 met an outage, 4 was refused for good. The
        entry is for 2 and 3 now; its successors are a done entry for 1 and a dead one for 4."""
        again, never = error.again, error.never
        why = error.passing if again else error.lasting
        if again and never and self._rule_holds(entry):
            again, never, why = again + never, (), str(error)
        if error.cut_short:
            tried = Progress(attempts=entry.progress.attempts, error=entry.progress.error)
            failed = Outcome(entry, tried)
        else:
            failed = self.failed(entry, Failure(why, lasting=not again))
        due = self.now() + int(error.after_seconds * 1_000_000)
        failed = _with(failed, next_attempt_at=max(failed.progress.next_attempt_at, due))
        left = again or never
        if len(left) == len(firings):
            return failed
        tried = replace(entry.progress, attempts=failed.progress.attempts, details=None)
        tried = replace(tried, next_attempt_at=0)
        ended = [one for one in firings.hex_ids().to_pylist() if one not in {*again, *never}]
        successors = []
        if ended:
            done = replace(tried, state="done", error=None)
            part = replace(entry, number=0, firing_ids=tuple(ended), progress=done)
            successors.append(replace(part, otherwise_at=None))
        if again and never:
            dead = replace(tried, state="dead", error=error.lasting)
            successors.append(replace(entry, number=0, firing_ids=never, progress=dead))
        return replace(failed, firing_ids=left, successors=tuple(successors))

    def _dead(self, outcome: Outcome, executor: Executor, firings: Firings) -> Outcome:
        """The outcome of an entry without further attempts: it is sealed and dead (G18). An earlier
        run may have sealed it already. It is held if it cannot be sealed."""
        progress = outcome.progress
        if progress.fate is not None:
            error = outcome.entry.progress.error or progress.error
            return _with(outcome, state="dead", error=error, fate=None, next_attempt_at=0)
        try:
            fate = executor.seal(outcome.entry, firings)
        except SinkError:
            return _with(outcome, error=f"{progress.error}; held, for it cannot be sealed")
        if fate is Fate.EFFECT:
            return Outcome(outcome.entry, progress.finished("done"))
        if fate is not Fate.SEALED:
            return _with(outcome, fate=fate.value)
        return _with(outcome, state="dead", next_attempt_at=0)

    def _rule_holds(self, entry: Entry) -> bool:
        """Whether its rule says `on_dead: hold`: an entry that cannot be done blocks the queue."""
        rule = self.rulebook.rules.get(entry.rule)
        return rule is not None and rule.reaction.on_dead == "hold"

    def failed(self, entry: Entry, why: Failure, fate: Fate | None = None) -> Outcome:
        """The outcome of an attempt that failed: the entry is tried again, or held."""
        rule = self.rulebook.rules.get(entry.rule)
        attempts, retry = entry.progress.attempts + 1, rule.reaction.retry if rule else Retry()
        stopped = fate in (Fate.SEALED, Fate.PASSED, Fate.UNKNOWN)
        held = stopped or why.lasting or attempts >= retry.attempts
        if not held:
            told = "rule %s: entry %d will be tried again: %s"
            log.warning(told, entry.rule, entry.number, why.error)
        progress = Progress(
            state="held" if held else "pending",
            attempts=attempts,
            error=why.error,
            details=why.details,
            fate=fate.value if fate is not None and stopped else None,
            next_attempt_at=self.now() + _pause(entry.number, attempts, retry, held=held),
        )
        return Outcome(entry, progress)


def _with(outcome: Outcome, **changes: Any) -> Outcome:
    """The outcome with another progress."""
    return replace(outcome, progress=replace(outcome.progress, **changes))


def _pause(number: int, attempts: int, retry: Retry, *, held: bool) -> int:
    """Microseconds until a failed entry is due again. The pause doubles with each attempt. Up to a
    quarter of it is cut, by entry and attempt, so that entries that failed together are not tried
    together."""
    doubled: int = retry.backoff_min_micros * 2 ** min(attempts - 1, 40)
    whole = retry.backoff_max_micros if held else min(doubled, retry.backoff_max_micros)
    return int(whole * random.Random(f"{number}/{attempts}").uniform(0.75, 1))  # noqa: S311


def firings_of_entry(entry: Entry, firings: Firings) -> Firings:
    """The firings that an entry is for. `firings`: all of its rule in its bucket."""
    if entry.firing_ids is not None:
        chosen = pc.is_in(firings.hex_ids(), pa.array(entry.firing_ids, pa.string()))
    else:
        chosen = firings.through
    return firings.some(chosen)


def edge_signals(
    edge: Edge, entry: Entry, firings: Firings, watched: Iterable[str], received_at: int
) -> tuple[Signal, ...]:
    """The signals of one edge of an entry's action, one for each firing; none if no rule watches
    it.

    A signal's id is made of the firing and the edge. So an action of several statements begins
    once, and another attempt does not begin it again. Example: `9f3c..-begin_of`.
    """
    event = str(EventKey(entry.rule, edge=edge))
    if event not in watched:
        return ()
    keys = python_rows(firings.firings.select(firings.key_names))
    ids, depths = firings.hex_ids().to_pylist(), firings.firings["depth"].to_pylist()
    return tuple(
        Signal(f"{one}-{edge}", event, key, received_at, depth, namespace=ENGINE)
        for one, key, depth in zip(ids, keys, depths, strict=True)
    )
