"""The texts of a rulebook that Spark runs, with the names of their suspects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from tidegate.engine.core.entries import Entry
from tidegate.engine.core.statement import FieldsStatement, encode
from tidegate.engine.core.suspect import Text, text_digest
from tidegate.rules.analysis.graph import sample_texts, table_events
from tidegate.rules.model import Rule, Rulebook, SignalAction, SignalEvent, Sql, Webhook


def texts_of(book: Rulebook) -> frozenset[Text]:
    """The texts of all suspects that a rulebook can have, but for kind `read`, which has no text.

    Example: rule `pay` has one action and an `if`: `("action", "pay/0", "9f3c..")`, `("condition",
    "pay", "41d0..")`.
    """
    found = {(kind, of, text_digest(text)) for kind, of, text in _texts(book)}
    seals = {("seal", f"{rule}/seal", table) for rule in book.rules for table in book.tables}
    return frozenset(found | seals)


def text_of(entry: Entry) -> str:
    """The text that Spark runs for an entry: its statement, or the expressions of its fields."""
    if isinstance(entry.statement, FieldsStatement):
        return _fields_text(entry.statement.fields)
    return encode(entry.statement)


def _texts(book: Rulebook) -> Iterator[tuple[str, str, str]]:
    for change in table_events(book):
        if change.where is not None:
            yield "where", change.table, change.where
    for event in book.events.values():
        if isinstance(event, SignalEvent) and event.where is not None:
            yield "where", f"signal {event.name}", event.where
    for rule in book.rules.values():
        yield from _texts_of_rule(rule)
        for text, _ in sample_texts(book, rule):
            yield "sample", text_digest(text), text


def _texts_of_rule(rule: Rule) -> Iterator[tuple[str, str, str]]:
    levels = rule.levels
    for asked in (rule.condition, *((levels.fire, levels.rearm) if levels else ())):
        if asked is not None:
            yield "condition", rule.name, asked.text
    for number, action in enumerate(rule.reaction.every):
        alternative = "/otherwise" if number >= len(rule.reaction.actions) else ""
        subject = f"{rule.name}/{number}{alternative}"
        if isinstance(action, Sql):
            yield "action", subject, action.text
        elif isinstance(action, SignalAction | Webhook):
            yield "action", subject, _fields_text(action.fields)


def _fields_text(fields: Mapping[str, str]) -> str:
    return json.dumps(dict(fields))
