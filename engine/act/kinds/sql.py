"""Statements that run under a marker. The target's log says what became of them (G16)."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.engine.act.executors import CurrentRules, NoEffectError, done
from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Entry, Fate, Outcome
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.ports import Sink, SinkError
from tidegate.engine.core.values import Firings


@dataclass(frozen=True, slots=True)
class Statements:
    """Runs the `sql` entries against a sink."""

    sink: Sink

    def attempt(self, waiting: Waiting, firings: Firings, current: CurrentRules) -> Outcome:  # noqa: ARG002
        """Run the statement unless it may have landed already."""
        entry, fate = waiting.entry, Fate.ABSENT
        if waiting.tried:
            fate = self.sink.fate(entry, firings)
        if fate is Fate.ABSENT:
            failpoint("statement.before")
            self.sink.run(entry, firings)
            failpoint("statement.after")
            fate = self.sink.fate(entry, firings)
        if fate is not Fate.EFFECT:
            raise NoEffectError(fate)
        return done(entry)

    def seal(self, entry: Entry, firings: Firings) -> Fate:
        """Commit the entry's marker without an effect, if the log shows neither effect nor seal."""
        fate = self.sink.fate(entry, firings)
        if fate is not Fate.ABSENT:
            return fate
        failpoint("seal.before")
        try:
            self.sink.seal(entry)
            failpoint("seal.after")
        except SinkError:
            fate = self.sink.fate(entry, firings)
            if fate in (Fate.ABSENT, Fate.UNKNOWN):
                raise
            return fate  # only the answer was lost
        return self.sink.fate(entry, firings)
