"""What event scripts take: of which columns their inputs read, and rules' detections as occurrences
(design/eventscript.md 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.engine.evaluate.shape import key_schema
from tidegate.engine.ids import column_set, firing_ids, instant_ids
from tidegate.engine.parameters import INSTANT, parameter_schema
from tidegate.engine.script.values import OBJECTS, object_text
from tidegate.engine.sparktypes import arrow_type, spark_type
from tidegate.engine.values import Batch, Detections, Needs
from tidegate.rules.errors import Problem
from tidegate.rules.eventscript.tree import Input
from tidegate.rules.eventscript.types import Structure, Type
from tidegate.rules.model import Rulebook, Script, ScriptEvent, ScriptInput
from tidegate.rules.nearest import did_you_mean
from tidegate.rules.scripttypes import fits

STARTED, DETECTED = "started_at", "detected_at"
"""The columns of a rule's detection beside those of its key."""


def input_columns(
    book: Rulebook, script: Script, tables: Mapping[str, pa.Schema], problems: list[Problem]
) -> dict[str, tuple[str, ...]]:
    """By event type or rule that a script takes, the columns that it reads, given the schemas of
    the rulebook's tables by name. What does not fit is added to `problems`."""
    found: dict[str, set[str]] = {}
    for each in script.program.inputs:
        taken = script.inputs[each.name]
        schema = _schema(book, taken.event, tables)
        found.setdefault(taken.event, set()).update(_columns(each, taken, schema, problems))
    return {event: tuple(sorted(columns)) for event, columns in found.items()}


def _schema(book: Rulebook, event: str, tables: Mapping[str, pa.Schema]) -> pa.Schema:
    """The columns of an event type, or of what a rule detects."""
    if event not in book.rules:
        return parameter_schema(book, event, tables)
    key = key_schema(book.rules[event], book, tables, [])
    return pa.schema([*key, pa.field(STARTED, INSTANT), pa.field(DETECTED, INSTANT)])


def _columns(
    read: Input, taken: ScriptInput, schema: pa.Schema, problems: list[Problem]
) -> set[str]:
    """The columns that an input reads, which are there, and of types that it takes."""

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


def taken(batch: Batch, columns: Sequence[str]) -> Batch:
    """The occurrences of an event type with the columns that a script reads. Those of a clock,
    which have nothing but their instant, get ids of it."""
    table = batch.table.select([*columns])
    ids = batch.ids or {"": instant_ids(batch.event, batch.time)}
    return Batch(batch.event, batch.time, batch.row, table, ids, batch.depth)


def as_declared(batch: Batch, event: ScriptEvent) -> Batch:
    """What a script emits with columns of the types that its event type is declared with: an
    `object`, which may be of any type, is text."""
    table = batch.table
    for number, name in enumerate(table.column_names):
        wanted = arrow_type(event.fields[name])
        if table.schema.field(name).type != wanted:
            table = table.set_column(number, name, _cast(table.column(name), wanted))
    return batch if table is batch.table else replace(batch, table=table)


def _cast(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if not _has_objects(column.type):
        return column.cast(wanted)
    values = [_with_texts(value, wanted) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(values, wanted)])


def _has_objects(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_objects(kind.field(n).type) for n in range(kind.num_fields))
    return _has_objects(kind.value_type) if pa.types.is_list(kind) else kind == OBJECTS


def _with_texts(value: Any, wanted: pa.DataType) -> Any:
    """A value whose objects are texts."""
    if value is None:
        return None
    if pa.types.is_struct(wanted):
        parts = (wanted.field(n) for n in range(wanted.num_fields))
        return {part.name: _with_texts(value[part.name], part.type) for part in parts}
    if pa.types.is_list(wanted):
        return [_with_texts(each, wanted.value_type) for each in value]
    return object_text(value) if pa.types.is_string(wanted) else value


def detected(found: Detections, needs: Needs) -> Batch:
    """A rule's detections as occurrences at their ends: columns are the key, `started_at` and
    `detected_at`; the id is of rule, key, interval and constituents; the depth their greatest."""
    ids = np.empty((len(found.event_row), 2), np.uint64)
    depth = np.zeros(len(found.event_row) + 1, np.int32)  # one more, for the last empty segment
    for code, event in enumerate(found.events):
        at = np.flatnonzero(found.event_code == code)
        row, batch = found.event_row[at], found.batches[event]
        columns = column_set(needs.ids.get((found.rule, event), ()))
        own = batch.ids_by(columns) if batch.ids else instant_ids(batch.event, batch.time)
        ids[at] = own[row]
        if batch.depth is not None:
            depth[at] = batch.depth[row]
    greatest = np.zeros(len(found), np.int32)
    filled = np.diff(found.offsets) > 0
    if len(found):
        greatest[filled] = np.maximum.reduceat(depth, found.offsets[:-1])[filled]
    start, end = (pa.array(side).cast(INSTANT) for side in (found.start, found.end))
    names = found.keys.column_names
    table = pa.table([*found.keys.columns, start, end], names=[*names, STARTED, DETECTED])
    own = firing_ids("", found.rule, found.keys, found.start, found.end, found.offsets, ids)
    return Batch(found.rule, found.end, np.arange(len(found)), table, {"": own}, greatest)
