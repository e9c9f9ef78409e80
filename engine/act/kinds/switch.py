"""Rules that switch rules (G24): asked for with the outcome, effective at the next plan."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace

from tidegate.engine.act.executors import Present, done
from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Entry, Fate, Outcome
from tidegate.engine.core.values import Firings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Switches:
    """Does `switch` entries: what an operator could ask for is asked for by the rule."""

    def attempt(self, waiting: Waiting, firings: Firings, present: Present) -> Outcome:  # noqa: ARG002
        text = json.loads(waiting.entry.text)
        log.info("%s asked to %s %s", waiting.entry.rule, text["kind"], text["rule"])
        return replace(done(waiting.entry), asks=(text["kind"], text["rule"]))

    def seal(self, entry: Entry, firings: Firings) -> Fate:  # noqa: ARG002
        """It would have been asked for with the outcome."""
        return Fate.SEALED
