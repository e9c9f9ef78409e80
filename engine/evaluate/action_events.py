"""The beginning, end and failure of rules' actions as events (G23): signals of the engine's own.

Example: `audit: {on: end_of pay}`, where `pay` is per `id`. The rulebook gets a signal `end_of pay`
with a field `id`. When an entry of `pay` is done, one is inserted for each of its firings, in the
same transaction. From then on it is a signal as any other: a bucket places it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.types as kinds

from tidegate.engine.core.event_names import action_edges, with_edges, without_own
from tidegate.engine.core.parameters import key_schema
from tidegate.engine.core.types.spark import spark_type
from tidegate.rules.errors import InputError, Problem
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Rulebook, SignalEvent


def watched(book: Rulebook) -> Mapping[str, frozenset[str]]:
    """By rule, the edges of its action that some enabled rule names, such as `end_of pay`."""
    of = action_edges(book)
    found: dict[str, set[str]] = {}
    for rule in book.rules.values():
        for event in x.names_in(rule.pattern.on) & of.keys() if rule.enabled else ():
            found.setdefault(of[event], set()).add(event)
    return {rule: frozenset(events) for rule, events in found.items()}


def with_action_events(book: Rulebook, tables: Mapping[str, pa.Schema]) -> Rulebook:
    """The rulebook with an event type for each edge, and for each `ignore_own: true`. Edges of
    actions are signals with the keys of their rule as fields. `tables`: schemas by name, from which
    the keys have their types.

    Raises InputError if a key's type cannot be known, or no signal can carry it.
    """
    book = without_own(with_edges(book, {*book.events, *book.rules}))
    of = action_edges(book)
    wanted = {
        event for rule in book.rules.values() for event in x.names_in(rule.pattern.on) & of.keys()
    }
    while wanted:
        # A key of `end_of a` may come from `end_of b`: those that are known are declared first.
        known = {e for e in wanted if not _needs(book, of[e]) & (wanted - book.events.keys())}
        if not known:
            at = book.rules[of[min(wanted)]].place
            message = f"the keys of {', '.join(sorted(wanted))} come from each other"
            hint = "let one of the rules take its key from an event type"
            raise InputError([Problem("key-type", message, at, hint)])
        declared = {event: _declared(book, event, of[event], tables) for event in sorted(known)}
        book = replace(book, events={**book.events, **declared})
        wanted -= known
    return book


def _needs(book: Rulebook, rule: str) -> set[str]:
    """The event types that a rule's key comes from, also through rules that it uses."""
    per = book.rules[rule].pattern.per.keys()
    used = [_needs(book, name) for name in per & book.rules.keys()]
    return set(per).union(*used)


def _declared(
    book: Rulebook, event: str, rule: str, tables: Mapping[str, pa.Schema]
) -> SignalEvent:
    of = book.rules[rule]
    problems: list[Problem] = []
    fields = {}
    for field in key_schema(of, book, tables, problems):
        kind = _carried(field.type)
        if kind is None:
            message = f"{event}: a key of type {spark_type(field.type)} cannot be in a signal"
            hint = "a key of another type, such as string"
            problems.append(Problem("key-type", message, of.place, hint))
        else:
            fields[field.name] = spark_type(kind)
    if problems:
        raise InputError(problems)
    return SignalEvent(event, of.place, fields)


def _carried(kind: pa.DataType) -> pa.DataType | None:
    """The type of a signal's field that holds every value of a key's type; None if there is
    none."""
    if kinds.is_integer(kind):
        return pa.int64()
    if kinds.is_floating(kind):
        return pa.float64()
    return None if kinds.is_binary(kind) else kind
