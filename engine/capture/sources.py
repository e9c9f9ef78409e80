"""The sources of a rulebook, and how long late commits are waited for (G2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.engine.core.ports import TableHead
from tidegate.rules.analysis.graph import table_events
from tidegate.rules.eventscript.regexes import walk
from tidegate.rules.eventscript.tree import Arrive, Elapse
from tidegate.rules.expressions.nodes import Clock, Cron, Own, Periodic, PeriodicStar, Plus
from tidegate.rules.model import ClockEvent, Rulebook, SignalEvent

_TIMERS = (Own, Plus, Periodic, PeriodicStar, Clock, Cron)
_SEVERAL_TABLES_SLACK_MS = 200
_COARSE_SLACK_MS = 1_200


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a rulebook: computed once, used at every poll.

    `tables`: those that raise events; their cursors move even if no rule listens. `signals`: the
    explicit event types; their signals are claimed even if no rule listens. `slack_ms`: how long
    late commits are waited for, if times are not coarse.
    """

    tables: tuple[str, ...]
    signals: tuple[str, ...]
    slack_ms: int

    def slack_micros(self, heads: Mapping[str, TableHead]) -> int:
        """The slack, longer if the log of a table has coarse times."""
        coarse = any(head.coarse_times for head in heads.values())
        return 1_000 * (max(self.slack_ms, _COARSE_SLACK_MS) if coarse else self.slack_ms)


def sources(rulebook: Rulebook) -> Sources:
    """The sources of a rulebook. Tables are in the rulebook's order."""
    events = rulebook.events.values()
    named = {e.table for e in table_events(rulebook)}
    tables = tuple(name for name in rulebook.tables if name in named)
    slack_ms = rulebook.settings.commit_slack_ms
    if slack_ms is None:
        alone = len(tables) <= 1 and not _has_timers(rulebook)
        slack_ms = 0 if alone else _SEVERAL_TABLES_SLACK_MS
    return Sources(tables, tuple(e.name for e in events if isinstance(e, SignalEvent)), slack_ms)


def _has_timers(rulebook: Rulebook) -> bool:
    """Whether the rulebook has timers or clocks."""
    clocks = any(isinstance(event, ClockEvent) for event in rulebook.events.values())
    scripts = (node for each in rulebook.scripts.values() for node in walk(each.program.regex))
    rules = (node for rule in rulebook.rules.values() for node in rule.pattern.on.walk())
    timed = any(isinstance(node, Arrive | Elapse) for node in scripts)
    return clocks or timed or any(isinstance(node, _TIMERS) for node in rules)
