"""A rulebook whose actions do nothing, as a backtest runs it. What they cause among the rules
themselves still happens: signals, beginnings and ends of actions, rules that are switched.

Example: `warn` does `[{sql: INSERT ..}, {signal: hot}]`, and another rule listens to `hot`. The
INSERT is done without being run, and the signal is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from tidegate.engine.act.executors import CurrentRules, Executor, Sealless, done
from tidegate.engine.act.kinds.condition import Decisions
from tidegate.engine.act.kinds.signal import Signals
from tidegate.engine.act.kinds.switch import Switches
from tidegate.engine.act.queues import Waiting
from tidegate.engine.core.entries import Outcome
from tidegate.engine.core.event_names import Edge
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
    causing = effects(book)
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


class Effects(NamedTuple):
    """What others notice of a firing that is acted on. `signals`: what their ids end with, behind
    the firing's and a dash. `switches`: what it asks for, and of which rule."""

    signals: frozenset[str]
    switches: frozenset[tuple[str, str]]


def heard_events(book: Rulebook) -> set[str]:
    """The event types, and rules, that rules and scripts which are on listen to."""
    nodes = (n for rule in book.rules.values() if rule.enabled for n in rule.pattern.on.walk())
    heard = {node.name for node in nodes if isinstance(node, x.Name | x.Edge)}
    return heard | {
        each.event for script in book.scripts.values() for each in script.inputs.values()
    }


def effects(book: Rulebook) -> Mapping[str, Effects]:
    """By rule, what other rules or scripts notice of its actions, other than by what they write.
    Rules of which nothing is noticed are left out."""
    nodes = [n for rule in book.rules.values() if rule.enabled for n in rule.pattern.on.walk()]
    heard = heard_events(book)
    edges = {rule: set[str]() for rule in book.rules}
    for node in nodes:
        if isinstance(node, x.BeginOf | x.EndOf) and node.name in edges:
            edge = Edge.BEGIN_OF if isinstance(node, x.BeginOf) else Edge.END_OF
            edges[node.name].add(str(edge))
    active = (rule for rule in book.rules.values() if rule.enabled and not rule.reaction.dry)
    found = {rule.name: _effects(rule, heard, edges[rule.name]) for rule in active}
    return {name: one for name, one in found.items() if one.signals or one.switches}


def _effects(rule: Rule, heard: Collection[str], edges: Collection[str]) -> Effects:
    actions = rule.reaction.actions
    raised = (
        str(number)
        for number, action in enumerate(actions)
        if isinstance(action, SignalAction) and action.event in heard
    )
    switched = (
        ("enable" if action.enabled else "disable", action.rule)
        for action in actions
        if isinstance(action, Switch)
    )
    return Effects(frozenset((*raised, *(edges if actions else ()))), frozenset(switched))


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
