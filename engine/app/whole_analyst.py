"""An analyst by whom each text reads all of `event`, as in a world without Spark.

The columns that a rule reads are part of the ids of occurrences (G6), and so of the choice between
simultaneous ones. Where both worlds count the same columns, they choose alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tidegate.engine.core.ports import Analyst
from tidegate.engine.core.values import Reading
from tidegate.rules.errors import Place
from tidegate.rules.model import Rule, SignalAction, Sql, Webhook


@dataclass(frozen=True, slots=True)
class WholeAnalyst:
    """Implements `engine.core.ports.Analyst` by another one, whose verdicts stand."""

    analyst: Analyst

    def action(
        self,
        rule: Rule,
        action: Sql,
        event: pa.Schema,
        parameters: Sequence[str],
        *,
        resolve: bool = True,
    ) -> Reading:
        """See `engine.core.ports.Analyst`."""
        return _whole(self.analyst.action(rule, action, event, parameters, resolve=resolve), event)

    def condition(
        self, rule: Rule, event: pa.Schema, per_firing: Sequence[str], *, resolve: bool = True
    ) -> Reading:
        """See `engine.core.ports.Analyst`."""
        return _whole(self.analyst.condition(rule, event, per_firing, resolve=resolve), event)

    def sample(self, text: str, place: Place) -> tuple[Reading, pa.DataType]:
        """See `engine.core.ports.Analyst`."""
        return self.analyst.sample(text, place)

    def fields(
        self,
        rule: Rule,
        action: SignalAction | Webhook,
        event: pa.Schema,
        per_firing: Sequence[str],
        types: Mapping[str, str],
    ) -> Reading:
        """See `engine.core.ports.Analyst`."""
        return _whole(self.analyst.fields(rule, action, event, per_firing, types), event)


def _whole(reading: Reading, event: pa.Schema) -> Reading:
    return replace(reading, columns=frozenset(event.names))
