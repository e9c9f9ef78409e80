"""`ignore_own: true`: a rule's event types without what its own actions wrote (G22).

Example: `r: {on: row, ignore_own: true}`. The rulebook gets an event type `row but of r`, which has
the occurrences of `row` but for the changes that actions of r committed, and r is a rule over that.
Its occurrences are called `row` and have the ids of that: other rules see them all.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Rule, Rulebook, SignalEvent, TableEvent

_BUT = " but of "


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
