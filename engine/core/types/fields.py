"""Fields of explicit events: values checked against the Spark types that the rulebook declares.

A field arrives as text (a command line), as JSON (the inbox, the store) or as a Python value, and
is kept as JSON: decimals, dates, times and bytes as strings.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from itertools import islice
from typing import Any

import orjson
import pyarrow as pa

from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.printable import shortened
from tidegate.engine.core.types.spark import arrow_type, spark_type
from tidegate.rules.errors import InputError, Place, Problem, did_you_mean
from tidegate.rules.model import SignalEvent

SHOWN_MAX = 100  # characters of a wrong value, or of its name, in a message
PROBLEMS_MAX = 100  # of one signal: what a client sends may be wrong in every part
_NOT_OF_THE_TYPE = (ValueError, TypeError, InvalidOperation, OverflowError)
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE
)


_NUMBERS = frozenset({int, float, Decimal})
_EXACT = Context(prec=100)  # more than the digits of any decimal, and than the scale takes away
Convert = Callable[[Any], Any]
"""Converts a value to one that Arrow takes for a type. Raises if it is not of the type."""


class MisfitError(ValueError):
    """A part of a value is not of its type. `path` leads to it (`.x`, `[3]`), `said` is why."""

    def __init__(self, path: str, said: str) -> None:
        self.path = path
        self.said = said
        super().__init__(f"{path} {said}")


def check_fields(
    event: SignalEvent, fields: Mapping[str, Any], *, text: bool = False
) -> dict[str, Any]:
    """The fields as they are stored. `text`: the values are words of a command line. Raises
    InputError with a problem for each field that is unknown, missing or of another type, up to
    PROBLEMS_MAX."""
    problems, stored = [], {}
    for name, ddl in event.fields.items():
        if name not in fields:
            message = f"field `{name}` of `{event.name}` is missing ({ddl})"
            null = f"`--null {name}`" if text else "null"
            problems.append(_problem(event, name, message, f"give it a value, or {null}"))
            continue
        value, (convert, store, kind) = fields[name], _of_type(ddl)
        try:
            if text and isinstance(value, str):
                value = _from_text(value, kind)
            stored[name] = None if value is None else store(convert(value))
        except MisfitError as error:
            message = f"field `{name}{error.path}` of `{event.name}` {error.said}"
            problems.append(_problem(event, name + error.path, message, _declared(event)))
        except _NOT_OF_THE_TYPE:
            message = f"field `{name}` of `{event.name}` {_not_a(ddl, value)}"
            problems.append(_problem(event, name, message, _declared(event)))
    if len(stored) + len(problems) != len(fields) or problems:
        problems += _unknown(event, fields)
    if problems:
        raise InputError(problems[:PROBLEMS_MAX])
    return stored


def are_of(ddl: str, values: Iterable[Any]) -> bool:
    """Whether values are of a type, or null."""
    convert, _, _ = _of_type(ddl)
    try:
        for value in values:
            if value is not None:
                convert(value)
    except _NOT_OF_THE_TYPE:
        return False
    return True


def _unknown(event: SignalEvent, fields: Mapping[str, Any]) -> list[Problem]:
    unknown = (name for name in fields if name not in event.fields)
    return [
        _problem(
            event,
            shortened(name, SHOWN_MAX),
            f"`{event.name}` has no field `{shortened(name, SHOWN_MAX)}`",
            did_you_mean(name[:SHOWN_MAX], event.fields) or _declared(event),
        )
        for name in islice(unknown, PROBLEMS_MAX)
    ]


def _not_a(ddl: str, value: Any) -> str:
    return f"is to be {ddl}, but is {shortened(_shown(value), SHOWN_MAX)}"


def _shown(value: Any) -> str:
    """The value as a message shows it. Large ones are only described: `a list of 5,000`."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | dict):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value):,}"
    if isinstance(value, int) and value.bit_length() > SHOWN_MAX:
        return "a number of many digits"
    return repr(value)


def fields_table(event: SignalEvent, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Stored fields of n signals as a table of n rows, a column for each declared field."""
    columns = {}
    for name, ddl in event.fields.items():
        convert, _, kind = _of_type(ddl)
        found = (row.get(name) for row in rows)
        columns[name] = pa.array([None if v is None else convert(v) for v in found], kind)
    return pa.table(columns)


def fitting(
    event: SignalEvent, rows: Sequence[Mapping[str, Any]]
) -> tuple[pa.Table, Mapping[int, str]]:
    """The table of the rows that fit the types declared now; and why the others do not, by row,
    without values."""
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
    """The value of a word on a command line. Booleans and nested types are JSON."""
    if text == "null" and not pa.types.is_string(kind):
        return None
    if pa.types.is_integer(kind):
        return int(_digits(text))
    if pa.types.is_boolean(kind) or pa.types.is_nested(kind):
        return orjson.loads(text)
    return text


@lru_cache(maxsize=10_000)
def _of_type(ddl: str) -> tuple[Convert, Convert, pa.DataType]:
    """How a value that is not null is converted, how it is stored, and the Arrow type."""
    kind = arrow_type(ddl)
    plain = pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_boolean(kind)
    return _converter(kind), ((lambda value: value) if plain else stored_value), kind


def _converter(kind: pa.DataType) -> Convert:
    """The conversion to a type, for values that are not null. Raises TypeError for a type that
    signals cannot carry."""
    if pa.types.is_null(kind):
        return lambda _: None
    convert = next((make(kind) for is_kind, make in _CONVERTERS if is_kind(kind)), None)
    if convert is None:
        raise TypeError(f"no signal carries {kind}")
    return convert


def part_of(kind: pa.DataType) -> Callable[[Any, str], Any]:
    """The conversion of a value or of a part of one, which may be null. Raises MisfitError with the
    path of the part."""
    convert = _converter(kind)

    def part(value: Any, path: str) -> Any:
        try:
            return None if value is None else convert(value)
        except MisfitError as error:
            raise MisfitError(path + error.path, error.said) from None
        except _NOT_OF_THE_TYPE:
            raise MisfitError(path, _not_a(spark_type(kind), value)) from None

    return part


def stored_value(value: Any) -> Any:
    """A converted value as JSON has it."""
    return json_text.value(value, stored=True)


def _of(value: Any, *types: type) -> Any:
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise TypeError
    return value


def _digits(text: str) -> str:
    """The text of a number as SQL writes it. Python's numbers also allow blanks, `1_000` and digits
    of other scripts: these raise ValueError."""
    if not _NUMBER.fullmatch(text):
        raise ValueError
    return text


def _number(value: Any) -> Any:
    value = _of(value, int, float, Decimal, str)
    return _digits(value) if isinstance(value, str) else value


def _text(value: Any) -> str:
    """A text. Raises UnicodeEncodeError for half a surrogate pair, which Arrow cannot hold."""
    text: str = value if type(value) is str else str(_of(value, str))
    if not text.isascii():
        text.encode()
    return text


def _integer(kind: pa.DataType) -> Convert:
    bound = 1 << (kind.bit_width - 1)

    def convert(value: Any) -> int:
        if not -bound <= (value if type(value) is int else _of(value, int)) < bound:
            raise OverflowError
        return int(value)

    return convert


def _double(kind: pa.DataType) -> Convert:
    """To a float. A number that is too large raises OverflowError. Only `inf` becomes infinity."""
    single = pa.types.is_float32(kind)

    def convert(value: Any) -> float:
        number = float(value if type(value) in _NUMBERS else _number(value))
        number = pa.scalar(number, kind).as_py() if single else number
        if math.isinf(number) and not _is_infinity(value):
            raise OverflowError
        return number

    return convert


def _is_infinity(value: Any) -> bool:
    if isinstance(value, str):
        return "inf" in value.lower()
    return value.is_infinite() if isinstance(value, Decimal) else math.isinf(value)


def _decimal(kind: pa.DataType) -> Convert:
    unit = Decimal(1).scaleb(-kind.scale)

    def convert(value: Any) -> Decimal:
        given = _number(value)
        number = given if isinstance(given, Decimal) else Decimal(str(given))
        exact = number.quantize(unit, context=_EXACT)
        if exact != number or len(exact.as_tuple().digits) > kind.precision:
            raise OverflowError
        return exact

    return convert


def _timestamp(kind: pa.DataType) -> Convert:
    def convert(value: Any) -> datetime:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(_of(value, str))
        if kind.tz is None:
            if moment.tzinfo is not None:
                raise ValueError
            return moment
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)

    return convert


def _date(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    return date.fromisoformat(_of(value, str))


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else base64.b64decode(_of(value, str), validate=True)


def _list(kind: pa.DataType) -> Convert:
    item = part_of(kind.value_type)
    return lambda value: [item(one, f"[{n}]") for n, one in enumerate(_of(value, list, tuple))]


def _map(kind: pa.DataType) -> Convert:
    """From an object, or from a list of pairs."""
    key, item = part_of(kind.key_type), part_of(kind.item_type)

    def convert(value: Any) -> list[tuple[Any, Any]]:
        pairs = value.items() if isinstance(value, dict) else _of(value, list)
        return [(key(k, f"[{n}].key"), item(v, f"[{n}].value")) for n, (k, v) in enumerate(pairs)]

    return convert


def _struct(kind: pa.DataType) -> Convert:
    parts = {field.name: part_of(field.type) for field in kind}

    def convert(value: Any) -> dict[str, Any]:
        for name in _of(value, dict):
            if name not in parts:
                meant = did_you_mean(name[:SHOWN_MAX], parts)
                raise MisfitError(f".{shortened(name, SHOWN_MAX)}", f"is not declared; {meant}")
        return {name: part(value.get(name), f".{name}") for name, part in parts.items()}

    return convert


_CONVERTERS: Sequence[tuple[Callable[[Any], Any], Callable[[Any], Convert]]] = (
    (pa.types.is_boolean, lambda _: lambda value: _of(value, bool)),
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _double),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_string, lambda _: _text),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_date, lambda _: _date),
    (pa.types.is_binary, lambda _: _bytes),
    (pa.types.is_list, _list),
    (pa.types.is_map, _map),
    (pa.types.is_struct, _struct),
)
