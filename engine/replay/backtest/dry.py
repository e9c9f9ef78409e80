"""A rulebook whose actions do nothing, as a backtest runs it. What they cause among the rules
themselves still happens: signals, beginnings and ends of actions, rules that are switched.

Example: `warn` does `[{sql: INSERT ..}, {signal: hot}]`, and another rule listens to `hot`. The
INSERT is done without being run, and the signal is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tidegate.engine.act.executors import CurrentRules, Executor, Sealless, done
from tidegate.engine.act.kinds.condition import Decisions
from tidegate.engine.act.kinds.signal import Signals
from tidegate.engine.act.kinds.switch import Switches
from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Outcome
from tidegate.engine.core.ports import Sink
from tidegate.engine.core.values import Firings
from tidegate.engine.replay.memory.executors import Actions
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Coupling, Rule, Rulebook, SignalAction, Start, Switch

_NEVER_SECONDS = 10**9


def dry_book(book: Rulebook) -> Rulebook:
    """The rulebook as a backtest runs it: each condition is asked as of the instant of detection
    (G14), no clock is missed, and no rule is parked because it fires often: that would depend on
    how the past is cut."""
    causing = causes(book)
    rules = {name: _dry(rule, dry=name not in causing) for name, rule in book.rules.items()}
    tables = {name: replace(table, start=Start()) for name, table in book.tables.items()}
    settings = replace(
        book.settings,
        misfire_grace_seconds=_NEVER_SECONDS,
        firings_per_rule_per_minute_max=0,
    )
    return replace(book, rules=rules, tables=tables, settings=settings)


def _dry(rule: Rule, *, dry: bool) -> Rule:
    reaction = replace(rule.reaction, dry=rule.reaction.dry or dry, within_micros=None)
    return replace(rule, condition_coupling=Coupling.IMMEDIATE, reaction=reaction)


def causes(book: Rulebook) -> frozenset[str]:
    """The rules whose actions other rules or scripts notice, other than by what they write."""
    nodes = [n for rule in book.rules.values() if rule.enabled for n in rule.pattern.on.walk()]
    heard = {node.name for node in nodes if isinstance(node, x.Name | x.Edge)}
    heard |= {each.event for script in book.scripts.values() for each in script.inputs.values()}
    edges = {n.name for n in nodes if isinstance(n, x.Edge) and not isinstance(n, x.Resolved)}

    def noticed(rule: Rule) -> bool:
        return rule.name in edges or any(
            isinstance(action, Switch)
            or (isinstance(action, SignalAction) and action.event in heard)
            for action in rule.reaction.actions
        )

    active = (rule for rule in book.rules.values() if rule.enabled and not rule.reaction.dry)
    return frozenset(rule.name for rule in active if noticed(rule))


@dataclass(frozen=True, slots=True)
class Nothing(Sealless):
    """The executor of what a backtest does not do."""

    def attempt(self, waiting: Waiting, firings: Firings, current: CurrentRules) -> Outcome:  # noqa: ARG002
        return done(waiting.entry)


class DryActions(Actions):
    """The executors of a backtest."""

    def executors(self, sink: Sink, now: Callable[[], int]) -> Mapping[str, Executor]:
        """By kind of entry. `sink`: evaluates the fields of signals."""
        nothing = Nothing()
        return {
            **dict.fromkeys(("sql", "unmarked", "webhook"), nothing),
            "signal": Signals(sink, now),
            "switch": Switches(),
            "condition": Decisions(),
        }
