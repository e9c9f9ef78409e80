"""Conditions that are asked by themselves: detached ones, and those that failed before (G14)."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from tidegate.engine.act.executors import Present
from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Entry, Fate, Outcome
from tidegate.engine.core.values import Firings


@dataclass(frozen=True, slots=True)
class Decisions:
    """Asks the conditions of `condition` entries, one at a time: they share Spark's views. What
    holds makes the entries of the rule's actions, stored with the answer."""

    _asking: threading.Lock = field(default_factory=threading.Lock)

    def attempt(self, waiting: Waiting, firings: Firings, present: Present) -> Outcome:
        with self._asking:
            return present.asked(waiting.entry, firings)

    def seal(self, entry: Entry, firings: Firings) -> Fate:  # noqa: ARG002
        """A question has no effect."""
        return Fate.SEALED
