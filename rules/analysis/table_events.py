"""The event types over tables, those of signals that a table raises among them."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.rules.model import Change, Rulebook, SignalEvent, TableEvent


def table_events(rulebook: Rulebook) -> Iterator[TableEvent]:
    """Every event type that changes of a table raise. A signal with `from_table:` is raised by the
    rows inserted there: its fields are their columns."""
    for event in rulebook.events.values():
        if isinstance(event, TableEvent):
            yield event
        elif isinstance(event, SignalEvent) and event.from_table is not None:
            yield TableEvent(
                event.name,
                event.place,
                Change.INSERT,
                event.from_table,
                where=event.where,
                where_place=event.where_place,
                columns={field: field for field in event.fields},
            )
