"""The values of scripts as JSON: of the lines of a trace, and of what scripts emit."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from tidegate.engine.core.text import json_text
from tidegate.engine.core.text.times import of_argument
from tidegate.engine.detect.scripts.emissions import ERROR_NAME, ERROR_TYPE, Emissions
from tidegate.engine.detect.scripts.input_columns import VALUE
from tidegate.engine.detect.scripts.value_types import (
    LARGEST,
    OBJECTS,
    SMALLEST,
    TIMELESS,
    arrow_type,
    output_column,
)
from tidegate.engine.replay import json_values, times
from tidegate.engine.replay.json_values import LINE
from tidegate.rules import model
from tidegate.rules.errors import InputError, Problem, word_place
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.types import Array, Basic, Structure, Type

_SHOWN = {**TIMELESS, Basic.OBJECT: OBJECTS}
_NO_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def table_of(
    read: tree.Input, taken: model.ScriptInput, lines: Sequence[bytes], zone: str
) -> pa.Table:
    """The values of an input in some lines of a trace, as a table: columns that the input reads,
    those of `order_by`, and the lines. Times without an offset are in the zone. Raises
    `InputError`."""
    rows = [orjson.loads(line) for line in lines]
    columns: dict[str, pa.Array] = {}
    if isinstance(read.type, Structure):
        wanted = dict(read.type.fields)
    else:
        name = taken.value or _only(rows)
        wanted = {name: read.type}
    for name, kind in wanted.items():
        columns[name] = _column([row.get(name) for row in rows], kind, read.name, name, lines, zone)
    for name in taken.order_by:
        if name not in columns:
            columns[name] = json_values.column([row.get(name) for row in rows])
    return pa.table({**columns, LINE: pa.array(lines, pa.binary())})


def _only(rows: Sequence[dict[str, Any]]) -> str:
    """The field that an input of one value takes."""
    names = dict.fromkeys(name for row in rows for name in row)
    names.pop("event", None)
    names.pop("time", None)
    return next(iter(names)) if len(names) == 1 else VALUE


def _column(
    values: Sequence[Any], kind: Type, name: str, field: str, lines: Sequence[bytes], zone: str
) -> pa.Array:
    if kind == Basic.OBJECT:
        found = [None if value is None else _object(value) for value in values]
        return output_column(found, kind)
    found = []
    for value, line in zip(values, lines, strict=True):
        try:
            found.append(_of_json(value, kind, zone))
        except (ValueError, KeyError, TypeError, OverflowError):
            message = f"{field} of input {name} is no {kind}: {line[:200].decode()}"
            hint = "mend the line, or the type of the input"
            problem = Problem("script-input", message, word_place("<trace>"), hint)
            raise InputError([problem]) from None
    return pa.array(found, arrow_type(kind))


def _object(value: Any) -> pa.Scalar:
    """A JSON value as an object; as text where Arrow has no such value."""
    try:
        return pa.scalar(value)
    except (pa.ArrowException, OverflowError):
        return pa.scalar(json.dumps(value))


def _of_json(value: Any, kind: Type, zone: str) -> Any:
    """A JSON value as one of `arrow_type`. Raises `ValueError`, `TypeError` or `KeyError`."""
    if value is None:
        return None
    if isinstance(kind, Array):
        if not isinstance(value, list):
            raise ValueError
        return [_of_json(each, kind.of, zone) for each in value]
    if isinstance(kind, Structure):
        if not isinstance(value, dict):
            raise ValueError
        return {name: _of_json(value.get(name), each, zone) for name, each in kind.fields}
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == Basic.TIME:
        return of_argument(str(value), zone)
    if kind == Basic.DOUBLE:
        return float(value) if number else _NO_NUMBERS[value]
    if kind == Basic.LONG and number and value == int(value) and SMALLEST <= value <= LARGEST:
        return int(value)
    if isinstance(value, bool if kind == Basic.BOOLEAN else str) and kind != Basic.LONG:
        return value
    raise ValueError


def lines_of(found: Emissions, script: model.Script, *, iso: bool) -> pa.Array:
    """Emissions as JSON lines."""
    types = {**script.program.outputs, ERROR_NAME: ERROR_TYPE}

    def shown(column: pa.Array, kind: Type, basic: Mapping[Type, pa.DataType]) -> list[Any]:
        return [_json(v, kind, iso) for v in column.cast(arrow_type(kind, basic)).to_pylist()]

    values = {n: shown(column, types[n], _SHOWN) for n, column in found.values.items()}
    kinds = zip(found.keys.columns, script.program.key_types, strict=True)
    keys = [shown(column, kind, TIMELESS) for column, kind in kinds]
    instants = times.printed(found.time, iso=iso).to_pylist()
    lines = []
    for n, (output, row) in enumerate(zip(found.output.tolist(), found.row.tolist(), strict=True)):
        name = found.outputs[output]
        key = {name: column[n] for name, column in zip(found.keys.column_names, keys, strict=True)}
        said = {
            "script": found.script,
            "key": key,
            "time": orjson.Fragment(instants[n]),
            "event": script.outputs.get(name, name),
            "value": values[name][row],
        }
        lines.append(orjson.dumps(said) + b"\n")
    return pa.array(lines, pa.large_binary())


def _json(value: Any, kind: Type, iso: bool) -> Any:
    if value is None:
        return None
    if isinstance(kind, Array):
        return [_json(each, kind.of, iso) for each in value]
    if isinstance(kind, Structure):
        return {name: _json(value[name], each, iso) for name, each in kind.fields}
    if kind == Basic.TIME:
        return orjson.Fragment(times.printed_one(value, iso=iso))
    return json_text.value(value, stored=True)
