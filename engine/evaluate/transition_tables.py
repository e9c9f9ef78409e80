"""The transition tables that a rule's statements may name, and the columns they are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from tidegate.engine.core.columns.transitions import Transitions
from tidegate.engine.core.event_names import Edge, EventKey, shown_name
from tidegate.rules.model import Reaction, Rulebook, TableEvent


def transitions(
    rulebook: Rulebook,
    reaction: Reaction,
    places: Mapping[str, Mapping[str, str]],
    tables: Mapping[str, pa.Schema],
) -> list[Transitions]:
    """The transition tables of each table whose changes are constituents of a rule. `places`: by
    event type in a parameter role, the column of the relation for each parameter."""
    by_table: dict[str, list[TableEvent]] = {}
    for name in places:
        event = rulebook.events[name]
        if isinstance(event, TableEvent) and not event.change.is_commit:
            by_table.setdefault(event.table, []).append(event)
    found = [
        _of_table(rulebook, table, f"{table}_" if len(by_table) > 1 else "", events, places, tables)
        for table, events in by_table.items()
    ]
    return [replace(one, per_firing=reaction.net == "firing") for one in found]


def _of_table(
    rulebook: Rulebook,
    table: str,
    prefix: str,
    events: Sequence[TableEvent],
    places: Mapping[str, Mapping[str, str]],
    tables: Mapping[str, pa.Schema],
) -> Transitions:
    key = rulebook.tables[table].key
    if not key:
        why = f"the net effect on {table} is by its key, and it declares none"
        return Transitions(table, prefix, refused=why, hint=f"tables: {table}: {{.., key: [..]}}")
    whole = [event for event in events if EventKey.of(event.name).edge is Edge.NONE]
    timed = next((event for event in events if event.time is not None), None)
    if timed is not None or not whole:
        called = shown_name((timed or events[0]).name)
        why = f"{called} tells not in which order the rows of {table} changed"
        hint = "use event types over the whole change, without time:"
        return Transitions(table, prefix, refused=why, hint=hint)
    columns = dict(_columns(tables[table], whole, places))
    if missing := [name for name in key if name not in columns]:
        why = f"not all event types over {table} have its key {', '.join(missing)} in one column"
        hint = "pick it in the columns: of each, under the same name"
        return Transitions(table, prefix, refused=why, hint=hint)
    changes = {shown_name(event.name): str(event.change) for event in whole}
    return Transitions(table, prefix, key, columns, changes)


def _columns(
    schema: pa.Schema, events: Sequence[TableEvent], places: Mapping[str, Mapping[str, str]]
) -> list[tuple[str, str]]:
    """The table's columns that all event types have in the same column of the relation; with that
    column."""
    found, by_event = [], list[dict[str | None, str]]()
    for event in events:
        items = [*places[event.name].items()][::-1]  # of several parameters the first counts
        by_event.append({event.columns.get(p, None if event.picks else p): c for p, c in items})
    for name in schema.names:
        one, *more = {columns.get(name) for columns in by_event}
        if one is not None and not more:
            found.append((name, one))
    return found
