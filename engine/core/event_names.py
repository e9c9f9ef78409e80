"""Event types that no name stands for: edges of commits, updates and actions (S10), ticks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tidegate.engine.core.ownwrites import public_name
from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.parser import unlabelled
from tidegate.rules.model import Rule, Rulebook, TableEvent

BEGIN = "[begin]"
"""What the event type of the beginning of a commit or an update begins with."""
BY = " by "
"""`a by t` are the occurrences of a as the clock t sees them (see `behind`)."""
TICK = "[tick]"
"""What the event types of ticks begin with: a `P` or `P*` has one of its own."""


def tick_type(e: x.Periodic | x.PeriodicStar) -> str:
    """The event type of the ticks of a `P` or `P*`: equal trees tick together (S6)."""
    return TICK + format_expression(unlabelled(e))


def is_tick(event: str) -> bool:
    return event.startswith(TICK)


def shown_name(event: str) -> str:
    """What an occurrence of an event type is called: its beginning is called like the whole, and so
    is what a clock sees, or a rule that does not see what it wrote. The edges of a rule's action
    have the names that they are written with."""
    if is_tick(event):
        return "tick"
    return public_name(event.removeprefix(BEGIN).partition(BY)[0])


def written_name(event: str) -> str:
    """An event type as an expression names it."""
    return f"begin_of {event.removeprefix(BEGIN)}" if event.startswith(BEGIN) else event


def action_edges(book: Rulebook) -> dict[str, str]:
    """The event types of the beginning, the end and the failure of each rule's action, as they are
    written, and the rule: their parameters are its key columns."""
    return {
        format_expression(edge(rule.name)): rule.name
        for rule in book.rules.values()
        if rule.actions
        for edge in (x.BeginOf, x.EndOf, x.Failed)
    }


def as_written(rule: str) -> str:
    """The name of a rule as it was written, of the one that a clock sees."""
    return rule.partition(BY)[0]


def begun(book: Rulebook) -> tuple[str, ...]:
    """The event types whose beginning some rule looks at."""
    named = (node for rule in book.rules.values() for node in rule.on.walk())
    names = {node.name for node in named if isinstance(node, x.BeginOf)}
    return tuple(name for name in book.events if name in names)


def edge_micros(book: Rulebook, event: str) -> int:
    """How long before and after its instant an event type begins and ends."""
    kind = book.events.get(event)
    return int(isinstance(kind, TableEvent) and kind.change.is_commit)


def with_edges(book: Rulebook, of: Collection[str]) -> Rulebook:
    """The rulebook with the edges of the event types and rules `of` as event types of their own.
    The plain name of an event type is its end; the edges of a rule are those of its action."""
    begins = {
        BEGIN + name: replace(kind, name=BEGIN + name, begin_of=name)
        for name in begun(book)
        if isinstance(kind := book.events[name], TableEvent)
    }
    rules = {rule.name: _named(rule, book, of) for rule in book.rules.values()}
    return replace(book, events={**book.events, **begins}, rules=rules)


def _named(rule: Rule, book: Rulebook, of: Collection[str]) -> Rule:
    on = _plain(rule.on, book, of)
    if on is rule.on:
        return rule
    per = dict(rule.per)
    for node in rule.on.walk():
        if isinstance(node, x.Edge) and node.name in rule.per and node.name in of:
            per[_edge_type(node, book)] = rule.per[node.name]
    for unnamed in (book.rules.keys() & per.keys()) - x.names_in(on):
        del per[unnamed]
    return replace(rule, on=on, per=per)


def _plain(e: x.Expression, book: Rulebook, of: Collection[str]) -> x.Expression:
    if isinstance(e, x.Edge):
        return x.Name(_edge_type(e, book)) if e.name in of else e
    return x.with_operands(e, [_plain(operand, book, of) for operand in e.operands()])


def _edge_type(edge: x.Edge, book: Rulebook) -> str:
    if edge.name not in book.events:
        return format_expression(edge)
    return BEGIN + edge.name if isinstance(edge, x.BeginOf) else edge.name
