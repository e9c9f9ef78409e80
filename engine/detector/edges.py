"""`begin_of x`, `end_of x`: the edges of transactions, updates and actions as event types (S10)."""

from __future__ import annotations

from dataclasses import replace

from rules import expression as x
from rules.model import Change, Rule, Rulebook, TableEvent

BEGIN, END = "begin_of ", "end_of "
"""No name has a blank."""


def shown_name(event: str) -> str:
    """What an occurrence of an event type is called: its edges are called like the whole."""
    return event.removeprefix(BEGIN).removeprefix(END)


def begun(book: Rulebook) -> tuple[str, ...]:
    """The event types whose beginning some rule looks at."""
    named = (node for rule in book.rules.values() for node in rule.on.walk())
    names = {node.name for node in named if isinstance(node, x.BeginOf)}
    return tuple(name for name in book.events if name in names)


def edge_micros(book: Rulebook, event: str) -> int:
    """How long before and after its instant an event type begins and ends."""
    kind = book.events[event]
    return int(isinstance(kind, TableEvent) and kind.change is Change.TRANSACTION)


def with_edges(book: Rulebook) -> Rulebook:
    """The rulebook with edges as names of event types. The plain name of an event type is its end;
    the edges of a rule are those of its action, which the engine raises and a history never has."""
    return replace(book, rules={r.name: _named(r, book) for r in book.rules.values()})


def _named(rule: Rule, book: Rulebook) -> Rule:
    edges = {BEGIN + name: columns for name, columns in rule.per.items()}
    edges |= {END + name: columns for name, columns in rule.per.items() if name in book.rules}
    return replace(rule, on=_plain(rule.on, book), per={**rule.per, **edges})


def _plain(e: x.Expression, book: Rulebook) -> x.Expression:
    match e:
        case x.BeginOf(name=name):
            return x.Name(BEGIN + name)
        case x.EndOf(name=name):
            return x.Name(name if name in book.events else END + name)
    return x.with_operands(e, [_plain(operand, book) for operand in e.operands()])
