"""What a rulebook listens to, and how late commits may show (G2)."""

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
    """What a rulebook listens to: worked out once, asked at every poll.

    `tables` raise events: their cursors move even while no rule listens. `signals` are the explicit
    event types: theirs are claimed even so. `slack_ms`: how long after its time a commit is waited
    for, where times are not coarse.
    """

    tables: tuple[str, ...]
    signals: tuple[str, ...]
    slack_ms: int

    def slack_micros(self, heads: Mapping[str, TableHead]) -> int:
        """The slack with the tables as they are now."""
        coarse = any(head.coarse_times for head in heads.values())
        return 1_000 * (max(self.slack_ms, _COARSE_SLACK_MS) if coarse else self.slack_ms)


def sources(rulebook: Rulebook) -> Sources:
    """What a rulebook listens to, tables in its order."""
    events = rulebook.events.values()
    named = {e.table for e in table_events(rulebook)}
    tables = tuple(name for name in rulebook.tables if name in named)
    slack_ms = rulebook.settings.commit_slack_ms
    if slack_ms is None:
        alone = len(tables) <= 1 and not _has_timers(rulebook)
        slack_ms = 0 if alone else _SEVERAL_TABLES_SLACK_MS
    return Sources(tables, tuple(e.name for e in events if isinstance(e, SignalEvent)), slack_ms)


def _has_timers(rulebook: Rulebook) -> bool:
    """Whether anything in the rulebook happens by itself."""
    clocks = any(isinstance(event, ClockEvent) for event in rulebook.events.values())
    scripts = (node for each in rulebook.scripts.values() for node in walk(each.program.regex))
    rules = (node for rule in rulebook.rules.values() for node in rule.on.walk())
    timed = any(isinstance(node, Arrive | Elapse) for node in scripts)
    return clocks or timed or any(isinstance(node, _TIMERS) for node in rules)
