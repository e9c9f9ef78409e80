"""The columns that the SQL of events and rules may name, as far as declarations tell them: those of
signals and commits are declared, those of tables are not."""

from __future__ import annotations

from collections.abc import Collection

from tidegate.rules.analysis.draft import Draft
from tidegate.rules.analysis.key_types import declared_columns
from tidegate.rules.analysis.keyed_events import columns_of
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import Change, Rule, TableEvent

# Columns that the engine adds to the parameter relation (semantics 5).
RELATION_COLUMNS = (
    "firing_id",
    "event_type",
    "label",
    "occurred_at",
    "started_at",
    "detected_at",
    "old",
    "new",
)
_CHANGE_TYPE = "_change_type"  # which a `change` has beside its columns


def filtered_columns(book: Draft, event: str) -> Collection[str] | None:
    """What `where` of an event type sees."""
    kind = book.events.get(event)
    if isinstance(kind, TableEvent) and not kind.change.is_commit:
        return None
    return declared_columns(kind)


def relation_columns(book: Draft, rule: Rule) -> set[str] | None:
    """What the expressions of a rule see."""
    known = columns_seen(book, rule)
    if known is None:
        return None
    labels = [node.label for node in rule.pattern.on.walk() if isinstance(node, x.Labelled)]
    spans = {f"{label}_{end}" for label in labels for end in ("start", "end")}
    return known | {*rule.pattern.key_names, *RELATION_COLUMNS, "sample"} | spans


def columns_seen(book: Draft, rule: Rule, seen: set[str] | None = None) -> set[str] | None:
    """The columns of the events of a rule, through rules used as events."""
    seen = {rule.name} if seen is None else seen
    found: set[str] = set()
    for node in rule.pattern.on.walk():
        if not isinstance(node, x.Name | x.Edge) or node.name in seen:
            continue
        seen.add(node.name)
        used, event = book.rules.get(node.name), book.events.get(node.name)
        if used is None and event is None:
            return None  # said to be unknown, or to be wrong
        columns = columns_of(book, node.name) if used is None else columns_seen(book, used, seen)
        if columns is None:
            return None
        found |= columns
        if isinstance(event, TableEvent) and event.change is Change.CHANGE:
            found.add(_CHANGE_TYPE)
    return found
