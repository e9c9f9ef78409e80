"""Makes the firings of detections where these are: in an executor, with their rows in a file (G26).

Example: a task detects 40,000 times `a ; b`. Its 80,000 rows of `event` go to a file of the task's
own, and the driver gets 40,000 ids, keys and instants. Of ten detections it gets the rows, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidegate.engine.core.relation_files import RowsShelf, may_be_in_files
from tidegate.engine.core.values import Detections, Firings
from tidegate.engine.evaluate.relation import no_sources
from tidegate.engine.evaluate.requirements import Prepared, PreparedRule
from tidegate.engine.evaluate.stage import firings_of


@dataclass(frozen=True, slots=True)
class FiringsApart:
    """Makes firings. It may be sent away. `rules`: those of which it does."""

    rulebook: str
    rules: Mapping[str, PreparedRule]

    @classmethod
    def of(cls, rulebook: str, prepared: Prepared) -> FiringsApart:
        """All rules but those whose ticks sample tables, which the driver asks, and those whose
        rows no file keeps."""
        own = {
            name: replace(rule, statements=(), conditions={})
            for name, rule in prepared.rules.items()
            if not rule.samples and may_be_in_files(rule.wanted)
        }
        return cls(rulebook, own)

    def __call__(self, found: Detections, shelf: RowsShelf) -> Detections | Firings:
        """The firings of a rule's detections, their rows on the shelf if they are many; the
        detections of any other rule. Raises OutageError."""
        prepared = self.rules.get(found.rule)
        if prepared is None:
            return found
        fired = firings_of(self.rulebook, prepared, found)
        if fired.sources is None:  # those of other tasks may have some
            fired = replace(fired, sources=no_sources(len(fired.relation)))
        return fired.on(shelf)
