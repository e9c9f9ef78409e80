"""What limits would have stopped.

Limits of what is carried stop a rule in the run itself. How often a rule may fire within a minute
is judged afterwards, by the instants of its firings: so the cut of the past does not matter.

Example: with `firings_per_rule_per_minute_max: 100` the firings 1 to 101 of a rule end within 40
seconds. It would have been parked when the last of them was detected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
import pyarrow as pa

from tidegate.engine.core.state import MINUTE_MICROS, Parked
from tidegate.engine.core.values import Firings
from tidegate.engine.loop.limits import often_reason
from tidegate.engine.replay.backtest.model import RuleFound
from tidegate.rules.model import Rulebook


def rules_found(
    book: Rulebook,
    fired: Mapping[str, Firings],
    parked: Iterable[Parked],
    shown: Collection[str],
) -> tuple[RuleFound, ...]:
    """The rules of a rulebook, each with when a limit would have parked it first. `fired`: their
    firings, by rule. `parked`: what the run has stopped."""
    limit = book.settings.firings_per_rule_per_minute_max
    often = (_often(rule, found, limit) for rule, found in fired.items() if limit)
    first: dict[str, Parked] = {}
    for one in sorted([*parked, *filter(None, often)], key=lambda one: one.instant):
        first.setdefault(one.rule, one)
    return tuple(_found(name, first.get(name), shown=name in shown) for name in book.rules)


def _found(name: str, parked: Parked | None, *, shown: bool) -> RuleFound:
    if parked is None:
        return RuleFound(name, shown=shown)
    return RuleFound(name, parked.instant, parked.reason, parked.hint, shown)


def _often(rule: str, fired: Firings, limit: int) -> Parked | None:
    ends = np.sort(fired.acted_on.firings["detected_at"].cast(pa.int64()).to_numpy())
    early = np.flatnonzero(ends[limit:] - ends[:-limit] < MINUTE_MICROS)
    if not len(early):
        return None
    at = int(ends[early[0] + limit])
    count = int(
        np.searchsorted(ends, at, side="right")
        - np.searchsorted(ends, at - MINUTE_MICROS, side="right")
    )
    return Parked(rule, *often_reason(count, limit), at)
