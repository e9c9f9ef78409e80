"""Which tables a rulebook reads, and how late their commits may show (G2)."""

from __future__ import annotations

from collections.abc import Mapping

from engine.ports import TableHead
from rules.expression import Clock, Cron, Own, Periodic, PeriodicStar, Plus
from rules.model import ClockEvent, Rulebook, TableEvent

_TIMERS = (Own, Plus, Periodic, PeriodicStar, Clock, Cron)
_SEVERAL_TABLES_SLACK_MS = 200
_COARSE_SLACK_MS = 1_200


def sources(rulebook: Rulebook) -> tuple[str, ...]:
    """The tables that raise events, by name. Their cursors move even while no rule listens."""
    named = {e.table for e in rulebook.events.values() if isinstance(e, TableEvent)}
    return tuple(name for name in rulebook.tables if name in named)


def has_timers(rulebook: Rulebook) -> bool:
    """Whether anything in the rulebook happens by itself."""
    return any(isinstance(event, ClockEvent) for event in rulebook.events.values()) or any(
        isinstance(node, _TIMERS) for rule in rulebook.rules.values() for node in rule.on.walk()
    )


def commit_slack_micros(rulebook: Rulebook, heads: Mapping[str, TableHead]) -> int:
    """How long after its time a commit is waited for."""
    slack_ms = rulebook.settings.commit_slack_ms
    if slack_ms is None:
        alone = len(sources(rulebook)) <= 1 and not has_timers(rulebook)
        slack_ms = 0 if alone else _SEVERAL_TABLES_SLACK_MS
    if any(head.coarse_times for head in heads.values()):
        slack_ms = max(slack_ms, _COARSE_SLACK_MS)
    return slack_ms * 1_000
