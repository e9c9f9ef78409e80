"""Statements that leave no marker, such as DELETE: done at least once (G19).

Example: a DELETE ends, and the process before its entry is settled. The next one runs it again.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.engine.act.executors import CurrentRules, Sealless, done
from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Outcome
from tidegate.engine.core.ports import Sink
from tidegate.engine.core.values import Firings


@dataclass(frozen=True, slots=True)
class Unmarked(Sealless):
    """Runs the `unmarked` entries against a sink. Nothing can seal one: whoever allows such
    statements accepts that one may land once more."""

    sink: Sink

    def attempt(self, waiting: Waiting, firings: Firings, current: CurrentRules) -> Outcome:  # noqa: ARG002
        self.sink.run(waiting.entry, firings)
        return done(waiting.entry)
