"""Fields of explicit events: values checked against the Spark types that the rulebook declares.

A field arrives as text (a command line), as JSON (the inbox, the store) or as a Python value, and
is kept as JSON: decimals, dates, times and bytes as strings.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import orjson
import pyarrow as pa

from tidegate.engine.printable import shortened
from tidegate.engine.sparktypes import arrow_type
from tidegate.rules.errors import InputError, Place, Problem
from tidegate.rules.model import SignalEvent
from tidegate.rules.nearest import did_you_mean

SHOWN_MAX = 100  # characters of a wrong value in a message
_NOT_OF_THE_TYPE = (ValueError, TypeError, InvalidOperation, OverflowError)
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE
)


def check_fields(
    event: SignalEvent, fields: Mapping[str, Any], *, text: bool = False
) -> dict[str, Any]:
    """The fields as they are stored; with `text`, values are as on a command line. Raises
    InputError with a problem for each field that is unknown, missing or of another type."""
    problems, stored = [], {}
    for name in fields:
        if name not in event.fields:
            hint = did_you_mean(name, event.fields) or _declared(event)
            problems.append(_problem(event, name, f"`{event.name}` has no field `{name}`", hint))
    for name, ddl in event.fields.items():
        if name not in fields:
            message = f"field `{name}` of `{event.name}` is missing ({ddl})"
            null = f"`--null {name}`" if text else "None"
            problems.append(_problem(event, name, message, f"give it a value, or {null}"))
            continue
        kind, value = arrow_type(ddl), fields[name]
        try:
            value = _from_text(value, kind) if text and isinstance(value, str) else value
            stored[name] = _stored(_convert(value, kind))
        except _NOT_OF_THE_TYPE:
            shown = shortened(repr(value), SHOWN_MAX)
            message = f"field `{name}` of `{event.name}` is to be {ddl}, but is {shown}"
            problems.append(_problem(event, name, message, _declared(event)))
    if problems:
        raise InputError(problems)
    return stored


def fields_table(event: SignalEvent, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Stored fields of n signals as a table of n rows, a column for each declared field."""
    columns = {}
    for name, ddl in event.fields.items():
        kind = arrow_type(ddl)
        columns[name] = pa.array([_convert(row.get(name), kind) for row in rows], kind)
    return pa.table(columns)


def fitting(
    event: SignalEvent, rows: Sequence[Mapping[str, Any]]
) -> tuple[pa.Table, Mapping[int, str]]:
    """The table of those rows whose fields are of the types declared now; by row of the others,
    why, without its values."""
    if (table := _table(event, rows)) is not None:
        return table, {}
    found = ((at, _fault(event, row)) for at, row in enumerate(rows))
    faults = {at: fault for at, fault in found if fault}
    return fields_table(event, [row for at, row in enumerate(rows) if at not in faults]), faults


def _table(event: SignalEvent, rows: Sequence[Mapping[str, Any]]) -> pa.Table | None:
    """None if a row does not fit."""
    if any(row.keys() - event.fields.keys() for row in rows):
        return None
    try:
        return fields_table(event, rows)
    except (*_NOT_OF_THE_TYPE, pa.ArrowException):
        return None


def _fault(event: SignalEvent, row: Mapping[str, Any]) -> str | None:
    if unknown := sorted(row.keys() - event.fields.keys()):
        return f"`{event.name}` is declared without field `{unknown[0]}` now"
    for name, ddl in event.fields.items():
        alone = replace(event, fields={name: ddl})
        if _table(alone, [{name: row.get(name)}]) is None:
            return f"field `{name}` is not of type {ddl}, as `{event.name}` is declared now"
    return None


def _declared(event: SignalEvent) -> str:
    fields = ", ".join(f"{name}: {ddl}" for name, ddl in event.fields.items())
    return f"its fields are {fields}" if fields else "it has no fields"


def _problem(event: SignalEvent, name: str, message: str, hint: str) -> Problem:
    place = Place(event.place.file, event.place.line, event.place.column, f"{event.name}.{name}")
    return Problem("signal-field", message, place, hint)


def _from_text(text: str, kind: pa.DataType) -> Any:
    """What a word on a command line says: JSON, where the type is not written as plain text."""
    if text == "null" and not pa.types.is_string(kind):
        return None
    if pa.types.is_integer(kind):
        return int(_digits(text))
    if pa.types.is_boolean(kind) or pa.types.is_nested(kind):
        return orjson.loads(text)
    return text


def _convert(value: Any, kind: pa.DataType) -> Any:
    """The Python value that Arrow takes for this type. Raises where it is not of the type."""
    if value is None or pa.types.is_null(kind):
        return None
    for is_kind, convert in _CONVERSIONS:
        if is_kind(kind):
            return convert(value, kind)
    raise TypeError(f"no signal carries {kind}")


def _stored(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, list):
        return [_stored(item) for item in value]
    if isinstance(value, tuple):
        return [_stored(item) for item in value]
    if isinstance(value, dict):
        return {name: _stored(item) for name, item in value.items()}
    return value


def _of(value: Any, *types: type) -> Any:
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise TypeError
    return value


def _digits(text: str) -> str:
    """Python also takes other scripts' digits, blanks and `1_000` for numbers; SQL does not."""
    if not _NUMBER.fullmatch(text):
        raise ValueError
    return text


def _number(value: Any) -> Any:
    value = _of(value, int, float, Decimal, str)
    return _digits(value) if isinstance(value, str) else value


def _text(value: Any, _: pa.DataType) -> str:
    """Half a surrogate pair is no character: neither Arrow nor a table can hold it."""
    _of(value, str).encode()
    return str(value)


def _integer(value: Any, kind: pa.DataType) -> int:
    bound = 1 << (kind.bit_width - 1)
    if not -bound <= _of(value, int) < bound:
        raise OverflowError
    return int(value)


def _double(value: Any, kind: pa.DataType) -> float:
    number = float(_number(value))
    return pa.scalar(number, kind).as_py() if pa.types.is_float32(kind) else number


def _decimal(value: Any, kind: pa.DataType) -> Decimal:
    number = Decimal(str(_number(value)))
    exact = number.quantize(Decimal(1).scaleb(-kind.scale))
    if exact != number or len(exact.as_tuple().digits) > kind.precision:
        raise OverflowError
    return exact


def _timestamp(value: Any, kind: pa.DataType) -> datetime:
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(_of(value, str))
    if kind.tz is None:
        if moment.tzinfo is not None:
            raise ValueError
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _date(value: Any, _: pa.DataType) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    return date.fromisoformat(_of(value, str))


def _bytes(value: Any, _: pa.DataType) -> bytes:
    return value if isinstance(value, bytes) else base64.b64decode(_of(value, str), validate=True)


def _list(value: Any, kind: pa.DataType) -> list[Any]:
    return [_convert(item, kind.value_type) for item in _of(value, list, tuple)]


def _map(value: Any, kind: pa.DataType) -> list[tuple[Any, Any]]:
    """From an object, or from a list of pairs."""
    pairs = value.items() if isinstance(value, dict) else _of(value, list)
    return [(_convert(k, kind.key_type), _convert(v, kind.item_type)) for k, v in pairs]


def _struct(value: Any, kind: pa.DataType) -> dict[str, Any]:
    names = {field.name for field in kind}
    if not set(_of(value, dict)) <= names:
        raise ValueError
    return {field.name: _convert(value.get(field.name), field.type) for field in kind}


_CONVERSIONS: Sequence[tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = (
    (pa.types.is_boolean, lambda value, _: _of(value, bool)),
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _double),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_string, _text),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_date, _date),
    (pa.types.is_binary, _bytes),
    (pa.types.is_list, _list),
    (pa.types.is_map, _map),
    (pa.types.is_struct, _struct),
)
