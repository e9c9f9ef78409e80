"""The types that a rulebook declares of a trace's values: of signals, and of commits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from tidegate.engine.core.types.fields import are_of, check_fields, stored_value
from tidegate.rules.analysis.key_types import COMMIT_COLUMNS, family
from tidegate.rules.model import Rulebook, SignalEvent, TableEvent

_OF_THE_LINE = ("event", "time")  # no fields, whatever is declared


def declared_signals(book: Rulebook) -> Mapping[str, SignalEvent]:
    """The events whose values have declared types, by name; a commit as if it were a signal of
    its columns."""
    found = {}
    for name, event in book.events.items():
        if isinstance(event, TableEvent) and event.change.is_commit:
            event = SignalEvent(name, event.place, COMMIT_COLUMNS[event.change])
        if isinstance(event, SignalEvent):
            fields = {n: ddl for n, ddl in event.fields.items() if n not in _OF_THE_LINE}
            found[name] = replace(event, fields=fields)
    return found


def has_types(event: SignalEvent) -> bool:
    """Whether the rulebook declares it: what a script takes without, is what the script reads."""
    return event.place.path.startswith("events.")


def check_types(event: SignalEvent, rows: Sequence[dict[str, Any]], lines: Sequence[bytes]) -> None:
    """Refuse what the inbox refuses, but for fields that are missing, here null, or not declared.
    A number that is written as text becomes one. `rows` are the `lines` as they were read. Raises
    InputError for the first line that is wrong."""
    columns = {name: [row.get(name) for row in rows] for name in event.fields}
    if not all(are_of(ddl, columns[name]) for name, ddl in event.fields.items()):
        for line in lines:  # with numbers as they are written
            exact = json.loads(line, parse_float=Decimal)
            check_fields(event, {name: exact.get(name) for name in event.fields})
    for name, values in columns.items():
        if family(event.fields[name]) == "number" and str in map(type, values):
            for row, value in zip(rows, values, strict=True):
                if isinstance(value, str):
                    row[name] = stored_value(float(value))  # NaN stays text, of one spelling
