"""Entries that ask a condition: a detached one, or one that failed in its bucket (G14)."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from tidegate.engine.act.executors import CurrentRules, Sealless
from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Outcome
from tidegate.engine.core.values import Firings


@dataclass(frozen=True, slots=True)
class Decisions(Sealless):
    """Asks the conditions of `condition` entries, one at a time: they share Spark's views. What
    holds makes the entries of the rule's actions, stored with the answer. A question has no
    effect."""

    _asking: threading.Lock = field(default_factory=threading.Lock)

    def attempt(self, waiting: Waiting, firings: Firings, current: CurrentRules) -> Outcome:
        with self._asking:
            return current.asked(waiting.entry, firings)
