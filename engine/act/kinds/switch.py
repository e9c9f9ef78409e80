"""Actions that enable or disable a rule (G24). The request is stored with the outcome, and takes
effect at the next plan."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from tidegate.engine.act.executors import CurrentRules, Sealless, done
from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Outcome
from tidegate.engine.core.statement import SwitchStatement
from tidegate.engine.core.values import Firings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Switches(Sealless):
    """Does `switch` entries: they ask for what an operator could ask for."""

    def attempt(self, waiting: Waiting, firings: Firings, current: CurrentRules) -> Outcome:  # noqa: ARG002
        statement = waiting.entry.stating(SwitchStatement)
        asked = "enable" if statement.enabled else "disable"
        log.info("%s asked to %s %s", waiting.entry.rule, asked, statement.rule)
        return replace(done(waiting.entry), asks=(asked, statement.rule))
