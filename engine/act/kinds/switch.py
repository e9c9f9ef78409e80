"""Rules that switch rules (G24): asked for with the outcome, effective at the next plan."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from tidegate.engine.act.executors import Present, done
from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Entry, Fate, Outcome
from tidegate.engine.core.statement import SwitchStatement
from tidegate.engine.core.values import Firings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Switches:
    """Does `switch` entries: what an operator could ask for is asked for by the rule."""

    def attempt(self, waiting: Waiting, firings: Firings, present: Present) -> Outcome:  # noqa: ARG002
        statement = waiting.entry.stating(SwitchStatement)
        asked = "enable" if statement.enabled else "disable"
        log.info("%s asked to %s %s", waiting.entry.rule, asked, statement.rule)
        return replace(done(waiting.entry), asks=(asked, statement.rule))

    def seal(self, entry: Entry, firings: Firings) -> Fate:  # noqa: ARG002
        """It would have been asked for with the outcome."""
        return Fate.SEALED
