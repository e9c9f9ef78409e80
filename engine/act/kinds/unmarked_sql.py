"""Statements that leave no marker, such as DELETE: done at least once (G19).

Example: a DELETE ends, and the process before its entry is settled. The next one runs it again.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.engine.act.executors import Present, done
from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Entry, Fate, Outcome
from tidegate.engine.core.ports import Sink
from tidegate.engine.core.values import Firings


@dataclass(frozen=True, slots=True)
class Unmarked:
    """Runs the `unmarked` entries against a sink."""

    sink: Sink

    def attempt(self, waiting: Waiting, firings: Firings, present: Present) -> Outcome:  # noqa: ARG002
        self.sink.run(waiting.entry, firings)
        return done(waiting.entry)

    def seal(self, entry: Entry, firings: Firings) -> Fate:  # noqa: ARG002
        """Nothing can seal it: who lets it in accepts that it may land once more."""
        return Fate.SEALED
