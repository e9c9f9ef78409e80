"""Event types that no name stands for: edges of commits, updates and actions (S10), ticks, and what
rules with `ignore_own: true` take (G22).

Example of the last: `r: {on: row, ignore_own: true}`. The rulebook gets an event type `row but of
r`, which has the occurrences of `row` but for the changes that actions of r committed, and r is a
rule over that. Its occurrences are called `row` and have the ids of that: other rules see them all.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tidegate.rules.expressions import nodes as x
from tidegate.rules.expressions.formatter import format_expression
from tidegate.rules.expressions.parser import unlabelled
from tidegate.rules.model import Rule, Rulebook, SignalEvent, TableEvent

BEGIN = "[begin]"
"""What the event type of the beginning of a commit or an update begins with."""
BY = " by "
"""`a by t` are the occurrences of a as the clock t sees them (see `behind`)."""
TICK = "[tick]"
"""What the event types of ticks begin with: a `P` or `P*` has one of its own."""
_BUT = " but of "


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


def without_own(book: Rulebook) -> Rulebook:
    """The rulebook with event types of their own for the rules that ignore what they write. Edges
    are event types already. A rule that is used as an event is seen as it is."""
    events = dict(book.events)
    rules = dict(book.rules)
    for rule in book.rules.values():
        if rule.ignore_own:
            seen = {
                name: f"{name}{_BUT}{rule.name}"
                for name in x.names_in(rule.on)
                if _of_table(book, name)
            }
            events |= {new: replace(book.events[name], name=new) for name, new in seen.items()}
            rules[rule.name] = _over(rule, seen)
    return replace(book, events=events, rules=rules)


def public_name(event: str) -> str:
    """An event type as the other rules have it."""
    return event.partition(_BUT)[0]


def ignored_writer(event: str) -> str:
    """The rule whose writing an event type is without; empty for one that has everything."""
    return event.partition(_BUT)[2]


def _of_table(book: Rulebook, name: str) -> bool:
    event = book.events.get(name)
    return isinstance(event, TableEvent) or (
        isinstance(event, SignalEvent) and event.from_table is not None
    )


def _over(rule: Rule, seen: dict[str, str]) -> Rule:
    """The rule over event types of other names."""
    per = {seen.get(event, event): columns for event, columns in rule.per.items()}
    return replace(rule, on=_renamed(rule.on, seen), per=per, ignore_own=False)


def _renamed(e: x.Expression, seen: dict[str, str]) -> x.Expression:
    if isinstance(e, x.Name):
        return x.Name(seen.get(e.name, e.name))
    return x.with_operands(e, [_renamed(operand, seen) for operand in e.operands()])
