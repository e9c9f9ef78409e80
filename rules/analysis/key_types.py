"""Which declared types can be keys, and which of them have equal values (`language.md` 4); the
types of scripts and those of columns (`eventscript.md` 1, Payload)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tidegate.rules.analysis.draft import Draft
from tidegate.rules.eventscript.types import Array, Basic, Structure, Type
from tidegate.rules.expressions import nodes as x
from tidegate.rules.model import (
    Change,
    ClockEvent,
    EventType,
    ScriptEvent,
    SignalEvent,
    TableEvent,
)
from tidegate.rules.yaml.kinds import BAD, Record, Report

Columns = Mapping[str, str | None]  # a column's type; None where only the table knows
_TRANSACTION: Mapping[str, str] = {
    "operation": "string",
    "operation_parameters": "map<string, string>",
    "operation_metrics": "map<string, string>",
    "user_metadata": "string",
    "version": "bigint",
    "read_version": "bigint",
}
COMMIT_COLUMNS: Mapping[Change, Mapping[str, str]] = {
    Change.TRANSACTION: _TRANSACTION,
    Change.COMMIT: {**_TRANSACTION, "changes_rows": "boolean"},
}
"""The columns of the event types that are commits."""
_FAMILIES = {
    "number": "byte tinyint short smallint int integer long bigint float real double decimal dec"
    " numeric",
    "text": "string char character varchar",
    "time": "date timestamp timestamp_ltz timestamp_ntz",
    "boolean": "boolean",
    "binary": "binary",
}
_FAMILY = {name: family for family, names in _FAMILIES.items() for name in names.split()}
ERROR_FIELDS: Mapping[str, str] = {
    "kind": "string",
    "event": "string",
    "message": "string",
    "place": "string",
    "at": "timestamp",
}
"""The fields of `$error`."""
_SQL = {
    Basic.BOOLEAN: "boolean",
    Basic.LONG: "bigint",
    Basic.DOUBLE: "double",
    Basic.STRING: "string",
    Basic.TIME: "timestamp",
    Basic.OBJECT: "string",  # a column has to be of some type; a declared signal can say another
}
_INTEGERS = {"byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint"}
_DECIMALS = {"decimal", "dec", "numeric"}
_FLOATS = {"float", "real", "double"}
ROUNDED = "a decimal equals a double only as SQL rounds it"
"""Why the two are no key together: 0.10 is none of the doubles."""
_TAKES = {
    Basic.BOOLEAN: {"boolean"},
    Basic.LONG: _INTEGERS,
    Basic.DOUBLE: {*_INTEGERS, *_DECIMALS, *_FLOATS},
    Basic.STRING: {"string", "char", "character", "varchar"},
    Basic.TIME: {"timestamp", "timestamp_ltz", "timestamp_ntz", "date"},
}


def check_key_types(
    book: Draft,
    record: Record,
    names: tuple[str, ...],
    per: Mapping[str, tuple[str, ...]],
    report: Report,
) -> None:
    """Add a problem for each key whose columns have types that are never equal."""
    place = record.place("per")
    for number, key in enumerate(names):
        columns = {event: listed[number] for event, listed in per.items()}
        types = {
            event: kind
            for event, column in columns.items()
            if (kind := next(_declared(book, event, column, ()), None)) is not None
        }
        said = (f"{columns[event]} of {event} is {kind}" for event, kind in types.items())
        listed = ", ".join(said)
        families = [family(kind) for kind in types.values()]
        if None in families:
            message = f"{key!r} cannot be a key: {listed}"
            hint = "a key is a number, text, a time, boolean or binary"
            report.add("key-type", message, place, hint)
        elif len({*families}) > 1:
            message = f"the columns of the key {key!r} have no common type: {listed}"
            report.add("key-type", message, place, "7 and '7' are never equal: declare one type")
        elif any(map(is_decimal, types.values())) and any(map(_is_float, types.values())):
            message = f"the columns of the key {key!r} have no common type: {listed}"
            report.add("key-type", message, place, f"{ROUNDED}: declare one type")


def declared_columns(event: EventType | None) -> Columns | None:
    """The columns of an event type; None where only the table knows them, or it is a rule."""
    if isinstance(event, SignalEvent | ScriptEvent):
        return event.fields
    if isinstance(event, TableEvent) and event.change.is_commit:
        return COMMIT_COLUMNS[event.change]
    if isinstance(event, TableEvent) and event.picks:
        return dict.fromkeys(event.columns)
    return {} if isinstance(event, ClockEvent) else None


def _declared(book: Draft, name: str, column: str, seen: tuple[str, ...]) -> Iterator[str]:
    """The declared types of a column of an event type, or of a rule's key. None are given where
    only the table knows them."""
    columns = declared_columns(book.events.get(name)) or {}
    if kind := columns.get(column):
        yield kind
    elif name in book.records("rules") and name not in seen:
        record = book.records("rules")[name]
        given = record.get("per", ())
        node = record.get("on")
        if isinstance(given, dict):  # the key is named after the first entry
            first = next(iter(given), "")
            own = [(first, column)] if given.get(first, BAD) is not BAD else []
        else:
            named = node[0].walk() if node else ()
            own = [(n.name, column) for n in named if isinstance(n, x.Name | x.Edge)]
        for inner, field in own:
            yield from _declared(book, inner, field, (*seen, name))


def family(ddl: str) -> str | None:
    """The family of a declared type: values of one family can be equal. None: no key is of it."""
    return _FAMILY.get(_word(ddl))


def payload(kind: Type) -> dict[str, str]:
    """The columns of a value, with their types: its fields, else `value`."""
    if isinstance(kind, Structure):
        return {name: sql_of(of) for name, of in kind.fields}
    return {"value": sql_of(kind)}


def sql_of(kind: Type) -> str:
    """The Spark SQL type of a script's type."""
    if isinstance(kind, Array):
        return f"array<{sql_of(kind.of)}>"
    if isinstance(kind, Structure):
        return f"struct<{', '.join(f'{name}: {sql_of(of)}' for name, of in kind.fields)}>"
    return _SQL[kind]


def fits(kind: Type, sql: str) -> bool:
    """Whether a script's type takes the values of a column. Elements and fields are compared when
    values arrive."""
    word = _word(sql)
    if isinstance(kind, Array):
        return word == "array"
    if isinstance(kind, Structure):
        return word == "struct"
    return kind == Basic.OBJECT or word in _TAKES[kind]


def is_decimal(sql: str) -> bool:
    return _word(sql) in _DECIMALS


def _is_float(sql: str) -> bool:
    return _word(sql) in _FLOATS


def _word(sql: str) -> str:
    found = re.match(r"\s*(\w+)", sql)
    return found[1].lower() if found else ""
