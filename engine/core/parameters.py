"""The columns of events: the parameters that `if`, `do` and `per` may name, a rule's key, and what
the inputs of event scripts read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.engine.core.event_names import Edge, EventKey
from tidegate.engine.core.relation_files import BESIDE
from tidegate.engine.core.types.common import common_type, rounded
from tidegate.engine.core.types.spark import arrow_type, spark_type
from tidegate.engine.core.values import FIRING_COLUMNS
from tidegate.rules.analysis.key_types import COMMIT_COLUMNS, ROUNDED, fits
from tidegate.rules.errors import Problem, did_you_mean
from tidegate.rules.eventscript.types import Structure, Type
from tidegate.rules.model import (
    Change,
    EventType,
    Rule,
    Rulebook,
    Script,
    ScriptEvent,
    ScriptInput,
    SignalEvent,
    Table,
    TableEvent,
)

if TYPE_CHECKING:
    from tidegate.rules.eventscript.tree import Input

TYPED = " "
"""How the name of a column begins that has the values of an event type's column with their types,
where the column itself has them encoded: ` paid.amount`, ` paid.old.amount`."""
CHANGE_TYPE = "_change_type"  # insert | delete | update: a parameter of `change` events
_FOR_EVERY_KEY = "; what per: {event: column} does not name is for every key"
OLD = "old"  # the pre-image, a struct of all columns of the table
SAMPLE = "sample"  # what a query said as of a tick
INSTANT = pa.timestamp("us", "UTC")
STARTED, DETECTED = "started_at", "detected_at"  # columns of a rule that is used as an event
COLUMNS_HINT = "give it another name where the event type is declared: columns: [a, b as c]"
ENGINE_COLUMNS: Mapping[str, pa.DataType] = {
    "firing_id": pa.string(),
    "event_type": pa.string(),
    "label": pa.string(),
    "occurred_at": INSTANT,
    "started_at": INSTANT,
    "detected_at": INSTANT,
}
"""The columns of a parameter relation that no event type brings."""
VERSION_OF, SIGNAL_OF = f"{BESIDE}version", f"{BESIDE}signal"
"""Columns of occurrences beside their parameters: the version of the commit that has the row; the
signal, as `client/ID` or `engine/ID`. Their names come after all others in order, so that they
decide between simultaneous occurrences only where all parameters are equal."""


@cache
def commit_schema(change: Change) -> pa.Schema:
    """The columns of `on: transaction` or `on: commit` events."""
    columns = COMMIT_COLUMNS[change]
    return pa.schema([pa.field(name, arrow_type(ddl)) for name, ddl in columns.items()])


def parameter_schema(rulebook: Rulebook, event: str, tables: Mapping[str, pa.Schema]) -> pa.Schema:
    """The parameters of an event type. `tables`: the schemas of the rulebook's tables by name.

    Event types `on: transaction` and `on: commit` have those of `commit_schema`. Other event types
    of a table have its columns, or those that `columns:` picks, under the names given there.
    Updates of a table with a `key` also have `old`. The beginning of an update has the values of
    the pre-image as its columns, and no `old`. Signals and event types of scripts have their
    fields.
    Clocks have no parameters. Raises KeyError naming a column in `columns:` that the table has not.
    """
    kind = rulebook.events[event]
    if isinstance(kind, SignalEvent | ScriptEvent):
        return pa.schema([pa.field(name, arrow_type(ddl)) for name, ddl in kind.fields.items()])
    if not isinstance(kind, TableEvent):
        return pa.schema([])
    if kind.change.is_commit:
        return commit_schema(kind.change)
    columns = tables[kind.table]
    taken = kind.parameters(columns.names)
    fields = [pa.field(name, columns.field(at).type) for name, at in taken.items()]
    if kind.change is Change.CHANGE:
        fields.append(pa.field(CHANGE_TYPE, pa.string()))
    if has_old(kind, rulebook.tables[kind.table]):
        fields.append(pa.field(OLD, pa.struct(list(columns))))
    return pa.schema(fields)


def has_old(event: TableEvent, table: Table) -> bool:
    """Whether the event's rows carry their pre-image as `old`: pairing takes a `key` (G11)."""
    images = event.change in (Change.UPDATE, Change.CHANGE) and bool(table.key)
    return images and EventKey.of(event.name).edge is Edge.NONE


def key_schema(
    rule: Rule, rulebook: Rulebook, tables: Mapping[str, pa.Schema], problems: list[Problem]
) -> pa.Schema:
    """The columns of a rule's key; what is wrong with them is added to `problems`."""
    kinds: list[pa.DataType | None] = [pa.null() for _ in rule.pattern.key_names]
    listed: list[list[str]] = [[] for _ in rule.pattern.key_names]
    seen: list[list[pa.DataType]] = [[] for _ in rule.pattern.key_names]
    for name, columns in rule.pattern.per.items():
        written = EventKey.of(name).written
        if name in rulebook.rules:
            schema = key_schema(rulebook.rules[name], rulebook, tables, [])  # its own `per:` (S7)
        elif missing_columns(rulebook.events[name], tables):
            continue  # said where the parameters are made
        else:
            schema = parameter_schema(rulebook, name, tables)
        for n, column in enumerate(columns):
            if column not in schema.names:
                message = f"per: event type {written} has no column {column}"
                hint = f"it has {', '.join(schema.names) or 'none'}"
                hint += _FOR_EVERY_KEY if len(rule.pattern.per) > 1 else ""
                problems.append(Problem("unknown-column", message, rule.place, hint))
                continue
            known, kind = kinds[n], schema.field(column).type
            listed[n].append(f"{column} of {written} is {spark_type(kind)}")
            seen[n].append(kind)
            alike = known is not None and not pa.types.is_nested(kind) and not rounded(seen[n])
            kinds[n] = common_type(known, kind) if alike else None
    fields = []
    for key, kind, said, types in zip(rule.pattern.key_names, kinds, listed, seen, strict=True):
        if kind is None:
            message = f"per: the columns of the key {key} do not compare: {', '.join(said)}"
            hint = "a key is of one type: a number, text, a time, boolean or binary"
            hint = f"{ROUNDED}: give these columns one type" if rounded(types) else hint
            problems.append(Problem("key-type", message, rule.place, hint))
        elif key.lower() in {*ENGINE_COLUMNS, *FIRING_COLUMNS, OLD, "new"}:
            message = f"per: {key} is a name of the engine's"
            problems.append(Problem("reserved-column", message, rule.place, COLUMNS_HINT))
        else:
            fields.append(pa.field(key, kind))
    return pa.schema(fields)


def missing_columns(event: EventType, tables: Mapping[str, pa.Schema]) -> list[str]:
    """The columns in `columns:` that the table has not."""
    if not isinstance(event, TableEvent):
        return []
    return [name for name in event.columns.values() if name not in tables[event.table].names]


def clash(event: EventType, tables: Mapping[str, pa.Schema]) -> tuple[str, str] | None:
    """Message and hint for a new name in `columns:` that another column of the table has."""
    if not isinstance(event, TableEvent):
        return None
    for name in event.clashes(tables[event.table].names):
        message = f"columns: the table {event.table} has a column {name} already"
        hint = f"write {event.columns[name]} as another name, or list the columns without *"
        return message, hint
    return None


def input_columns(
    book: Rulebook, script: Script, tables: Mapping[str, pa.Schema], problems: list[Problem]
) -> dict[str, tuple[str, ...]]:
    """The columns that a script reads, by event type or rule that it takes. `tables`: the schemas
    of the rulebook's tables by name. What does not fit is added to `problems`."""
    found: dict[str, set[str]] = {}
    for each in script.program.inputs:
        taken = script.inputs[each.name]
        schema = _taken_schema(book, taken.event, tables)
        found.setdefault(taken.event, set()).update(_read_columns(each, taken, schema, problems))
    return {event: tuple(sorted(columns)) for event, columns in found.items()}


def _taken_schema(book: Rulebook, event: str, tables: Mapping[str, pa.Schema]) -> pa.Schema:
    """The columns of an event type, or of a rule that is used as one."""
    if event not in book.rules:
        return parameter_schema(book, event, tables)
    key = key_schema(book.rules[event], book, tables, [])
    return pa.schema([*key, pa.field(STARTED, INSTANT), pa.field(DETECTED, INSTANT)])


def _read_columns(
    read: Input, taken: ScriptInput, schema: pa.Schema, problems: list[Problem]
) -> set[str]:
    """The columns that an input reads. A missing column or one of another type is a problem."""

    def wrong(code: str, message: str, hint: str) -> None:
        problems.append(Problem(code, message, read.place, hint))

    typed: dict[str, Type] = {}
    if isinstance(read.type, Structure):
        typed = dict(read.type.fields)
    else:
        column = taken.value or ("value" if "value" in schema.names else None)
        if column is None and len(schema) == 1:
            column = schema.names[0]
        if column is None:
            message = f"which column of {taken.event!r} the input {read.name!r} takes is not said"
            hint = f"write in: {{{read.name}: {{event: {taken.event}, value: COLUMN}}}}"
            wrong("value", message, hint)
            return set()
        typed = {column: read.type}
    for column in dict.fromkeys([*typed, *taken.order_by]):
        if column not in schema.names:
            hint = did_you_mean(column, schema.names)
            wrong("unknown-column", f"{taken.event!r} has no column {column!r}", hint)
            continue
        sql = spark_type(schema.field(column).type)
        if column in typed and not fits(typed[column], sql):
            message = (
                f"the input {read.name!r} takes {typed[column]}, and {column} of {taken.event!r} "
                f"is {sql}"
            )
            wrong("type", message, "declare another type, or another column")
    return {*typed, *taken.order_by}
