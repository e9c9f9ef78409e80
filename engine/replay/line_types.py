"""What a rulebook declares of a trace's lines: the types of signals and of commits, and which
changes of a table are occurrences."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa

from tidegate.engine.core.types.fields import are_of, check_fields, stored_value
from tidegate.engine.core.types.spark import arrow_type
from tidegate.rules.analysis.key_types import COMMIT_COLUMNS, family
from tidegate.rules.errors import InputError, Place, Problem
from tidegate.rules.model import Change, Rulebook, SignalEvent, TableEvent

DIGITS_SURE = 15  # that a double keeps of any decimal
OF_THE_LINE = ("event", "time")  # no fields, whatever is declared
KINDS = ("insert", "update", "delete")
TAKEN: Mapping[Change, Collection[str]] = {
    Change.INSERT: ("insert",),
    Change.DELETE: ("delete",),
    Change.UPDATE: ("update",),
    Change.CHANGE: KINDS,
}
"""The changes that are occurrences of an event type."""


def declared_signals(book: Rulebook) -> Mapping[str, SignalEvent]:
    """The events whose values have declared types, by name; a commit as if it were a signal of
    its columns."""
    found = {}
    for name, event in book.events.items():
        if isinstance(event, TableEvent) and event.change.is_commit:
            event = SignalEvent(name, event.place, COMMIT_COLUMNS[event.change])
        if isinstance(event, SignalEvent):
            fields = {n: ddl for n, ddl in event.fields.items() if n not in OF_THE_LINE}
            found[name] = replace(event, fields=fields)
    return found


def has_types(event: SignalEvent) -> bool:
    """Whether the rulebook declares it: what a script takes without, is what the script reads."""
    return event.place.path.startswith("events.")


def declared_fields(book: Rulebook) -> Mapping[str, Collection[str]]:
    """The fields that a line is to have, by event: of a signal, and of a table's `columns:`."""
    found: dict[str, Collection[str]] = {}
    for name, event in book.events.items():
        if isinstance(event, SignalEvent) and has_types(event):
            found[name] = [field for field in event.fields if field not in OF_THE_LINE]
        elif isinstance(event, TableEvent) and event.picks:
            found[name] = [*event.columns]
    return found


def check_types(
    event: SignalEvent,
    rows: Sequence[dict[str, Any]],
    lines: Sequence[bytes],
    keys: Collection[str],
) -> None:
    """Refuse what the inbox refuses, but for fields that are missing, here null, or not declared.
    A number that is written as text becomes one. `rows` are the `lines` as they were read; `keys`:
    fields that are compared. Raises InputError for the first line that is wrong."""
    columns = {name: [row.get(name) for row in rows] for name in event.fields}
    if all(are_of(ddl, columns[name]) for name, ddl in event.fields.items()):
        long = _long_decimals(tuple(event.fields.items()))
        lines = [line for line in lines if long.search(line)] if long else []
    for line in lines:  # with numbers as they are written
        exact = json.loads(line, parse_float=Decimal)
        check_fields(event, {name: exact.get(name) for name in event.fields})
        for name in event.fields.keys() & keys:
            _check_digits(name, event.fields[name], exact.get(name))
    for name, values in columns.items():
        if family(event.fields[name]) == "number" and str in map(type, values):
            for row, value in zip(rows, values, strict=True):
                if isinstance(value, str):
                    row[name] = stored_value(float(value))  # NaN stays text, of one spelling


@lru_cache
def _long_decimals(fields: Sequence[tuple[str, str]]) -> re.Pattern[bytes] | None:
    """What finds, in a line, a decimal that a double may not tell from another: of more than 15
    digits, or with an exponent. None where there are no decimals."""
    names = [name for name, ddl in fields if pa.types.is_decimal(arrow_type(ddl))]
    places = [re.escape(json.dumps(name, ensure_ascii=False)) + r"\s*:\s*" for name in names]
    if any("decimal" in str(arrow_type(ddl)) for name, ddl in fields if name not in names):
        places.append(r"[:,\[]\s*")  # inside of another value
    number = r'"?-?(?:[0-9](?:\.?[0-9]){15}|[0-9.]+[eE])'
    return re.compile(f"(?:{'|'.join(places)}){number}".encode()) if places else None


def _check_digits(name: str, ddl: str, value: Any) -> None:
    """Refuse a decimal key that would be one with another: keys are compared as doubles."""
    if value is None or isinstance(value, int) or not pa.types.is_decimal(arrow_type(ddl)):
        return
    if Decimal(repr(float(value))) != Decimal(value):
        message = f"{name}: {value} has more digits than keys are compared by here"
        hint = f"give it {DIGITS_SURE} digits, or fewer"
        raise InputError([Problem("long-decimal", message, Place(), hint)])
