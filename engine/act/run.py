"""Runs entries, in the order of their numbers, and settles them (G14, G16, G17)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from engine.act.signals import signals_of
from engine.failpoints import failpoint
from engine.ports import Sink, SinkError
from engine.values import Entry, Firings, Outcome
from rules.errors import EngineError
from rules.model import Retry, Rulebook

TEXT_SHOWN = 100  # characters of a statement in an error
FiringsOf = Callable[[Entry], Firings]  # all firings of the entry's rule and bucket


class Settle(Protocol):
    """Records an outcome under the lease's epoch; a done entry's signals with it (G22)."""

    def __call__(self, outcome: Outcome) -> None: ...


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs the entries of one rulebook.

    `check` raises EngineError `lease-lost` before an entry if the epoch is not ours any more (G21);
    `wall` is the time in microseconds at which signals are received.
    """

    rulebook: Rulebook
    sink: Sink
    settle: Settle
    check: Callable[[], None]
    wall: Callable[[], int]
    sleep: Callable[[float], None] = time.sleep

    def run(self, entries: Iterable[Entry], firings: FiringsOf, *, resumed: bool) -> int:
        """Run every pending entry; returns how many were done. `resumed`: some may have been
        committed before, by a run that ended before it could say so.

        An entry that fails holds the later ones of its rule and nothing else; when the others are
        done, EngineError `action-failed` names the first that failed. It stays pending.
        """
        failed: dict[str, Outcome] = {}
        done = 0
        for entry in sorted(entries, key=lambda e: e.number):
            if entry.state != "pending" or entry.rule in failed:
                continue
            self.check()
            failpoint("action.before")
            outcome = self._attempt(entry, firings(entry), resumed=resumed)
            failpoint("action.after_commit")
            self.settle(outcome)
            failpoint("action.between")
            if outcome.state == "failed":
                failed[entry.rule] = outcome
            else:
                done += 1
        if failed:
            raise _stopped(next(iter(failed.values())), len(failed))
        return done

    def _attempt(self, entry: Entry, firings: Firings, *, resumed: bool) -> Outcome:
        """One entry, tried as often as its rule's `retry` says."""
        rule = self.rulebook.rules.get(entry.rule)
        retry = rule.retry if rule is not None else Retry()
        firings = firings_of_entry(entry, firings)
        error = ""
        for attempt in range(1, retry.attempts + 1):
            if attempt > 1:
                self.sleep(_pause_seconds(retry, attempt))
                self.check()
            try:
                if entry.kind == "signal":
                    signals = signals_of(entry, firings, self.sink, self.wall())
                    return Outcome(entry, "done", entry.attempts + attempt, signals=signals)
                if not ((resumed or attempt > 1) and self.sink.landed(entry)):
                    self.sink.run(entry, firings)
                return Outcome(entry, "done", entry.attempts + attempt)
            except EngineError:
                raise
            except Exception as failure:  # whatever it is, the entry must not be passed over
                known = isinstance(failure, SinkError)
                error = str(failure) if known else f"{type(failure).__name__}: {failure}"
        return Outcome(entry, "failed", entry.attempts + retry.attempts, error)


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


def _pause_seconds(retry: Retry, attempt: int) -> float:
    """The pause before an attempt, doubling from the second on."""
    micros: int = min(retry.backoff_min_micros * 2 ** (attempt - 2), retry.backoff_max_micros)
    return micros / 1_000_000


def _stopped(outcome: Outcome, rules: int) -> EngineError:
    entry = outcome.entry
    others = f"; so did entries of {rules - 1} other rules" if rules > 1 else ""
    message = (
        f"rule {entry.rule}: entry {entry.number} of bucket {entry.bucket} failed after "
        f"{outcome.attempts} attempts: {outcome.error}{others}"
    )
    if entry.kind == "sql":
        message += f"; it is {shorten(entry.text, TEXT_SHOWN, placeholder=' ..')}"
    hint = (
        "nothing is lost: the entry is kept, with the text it was stored with, and the next "
        "`tidegate run` begins with it; remove the cause in the "
        f"{f'tables (it writes {entry.target})' if entry.target else 'data'}, then run again"
    )
    return EngineError("action-failed", message, hint)
