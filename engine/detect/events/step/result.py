"""Detections -> the table that `tidegate.detect` returns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tidegate.engine.core.types.spark import arrow_type
from tidegate.engine.core.values import Detections, Int64
from tidegate.engine.detect.events.kernels import table_rows
from tidegate.engine.detect.events.occurrences.comparison import KeyTypeError, united, whole
from tidegate.engine.detect.events.occurrences.instances import Bools
from tidegate.engine.detect.events.occurrences.occurrence_table import wrong
from tidegate.rules.model import Rulebook, ScriptEvent

_TIMESTAMP = pa.timestamp("us", "UTC")
COLUMNS = ("rule", "start", "end", "constituents", "ticks")
"""The columns of a detection, beside its key."""
_TICK = pa.struct([("event", pa.string()), ("time", _TIMESTAMP)])


def joined(
    book: Rulebook, found: Sequence[pa.Table], occurrences: pa.Table, id: str | None = None
) -> pa.Table:
    """The detections of all rules as one table, in order of end and rule. `found` has a table for
    each rule. `occurrences` has the types of keys of which nothing is detected. Constituents are
    its rows, or the values of its column `id`."""
    names = key_names(book)
    parts = sorted(found, key=lambda part: part.column("rule")[0].as_py())
    empty = _plain(
        pa.nulls(0, pa.string()),
        np.empty(0, np.int64),
        np.empty(0, np.int64),
        pa.array([], pa.list_(pa.int64())),
        pa.array([], pa.list_(_TICK)),
    )
    fixed = pa.concat_tables([part.select(empty.column_names) for part in (empty, *parts)])
    table = pa.table(
        {"rule": fixed.column("rule")}
        | {n: _keys(parts, n, _key_type(book, n, occurrences.schema)) for n in names}
        | {n: fixed.column(n) for n in COLUMNS[1:]}
    )
    if len(found) > 1:
        end = table.column("end").cast(pa.int64()).to_numpy()
        table = table.take(pa.array(np.argsort(end, kind="stable")))
    return table if id is None else _named(table, occurrences.column(id))


def key_names(book: Rulebook) -> list[str]:
    """The key columns of all rules."""
    return list(dict.fromkeys(n for rule in book.rules.values() for n in rule.pattern.key_names))


def _named(found: pa.Table, ids: pa.ChunkedArray) -> pa.Table:
    """Detections with what `ids` has in the rows of their constituents."""
    rows = found.column("constituents").combine_chunks()
    lists = pa.ListArray.from_arrays(rows.offsets, whole(ids).take(rows.values))
    return found.set_column(found.column_names.index("constituents"), "constituents", lists)


def schema(book: Rulebook, occurrences: pa.Schema, id: str) -> pa.Schema:
    """The schema of `joined` over any occurrences of a schema; a key of numbers of several types
    has the one that holds all of them. Raises `InputError`."""
    fields = [pa.field("rule", pa.string())]
    for name in key_names(book):
        kinds = [
            pa.chunked_array([], kind)
            for rule in book.rules.values()
            if rule.enabled
            for event, columns in rule.pattern.per.items()
            for key, column in zip(rule.pattern.key_names, columns, strict=True)
            if key == name and (kind := _kind(book, event, column, occurrences)) is not None
        ]
        fields.append(pa.field(name, _united(name, kinds).type if kinds else pa.null()))
    fields += [pa.field("start", _TIMESTAMP), pa.field("end", _TIMESTAMP)]
    fields.append(pa.field("constituents", pa.list_(occurrences.field(id).type)))
    return pa.schema([*fields, pa.field("ticks", pa.list_(_TICK))])


def _keys(parts: Sequence[pa.Table], name: str, kind: pa.DataType) -> pa.ChunkedArray:
    """One key column for all rules. It is null for rules without it. `kind` is its type where all
    rules are without it."""
    columns = [
        p.column(name) if name in p.column_names else pa.chunked_array([pa.nulls(len(p))])
        for p in parts
    ]
    if all(pa.types.is_null(column.type) for column in columns):
        return pa.chunked_array([pa.nulls(sum(map(len, columns)), kind)])
    return _united(name, columns)


def _kind(book: Rulebook, event: str, column: str, occurrences: pa.Schema) -> pa.DataType | None:
    """The type of an event type's column, in the rows or, for what a script emits, as declared."""
    declared = book.events.get(event)
    if isinstance(declared, ScriptEvent):
        return arrow_type(declared.fields[column])
    return occurrences.field(column).type if column in occurrences.names else None


def _united(name: str, columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    try:
        return united(columns)
    except KeyTypeError as error:
        hint = "name the keys of these rules differently, or give their columns one type"
        raise wrong("key-type", f"keys {name} of several rules: {error}", hint) from None


def _key_type(book: Rulebook, name: str, schema: pa.Schema) -> pa.DataType:
    """The type of a key column in which nothing is detected."""
    for rule in book.rules.values():
        for fields in rule.pattern.per.values():
            for key, field in zip(rule.pattern.key_names, fields, strict=True):
                if key == name and field in schema.names:
                    return schema.field(field).type
    return pa.null()


def _lists(offsets: Int64, mark: Bools, values: pa.Array) -> pa.Array:
    """The column of lists whose values are the marked entries; `values` has these alone."""
    own = np.concatenate([[0], np.cumsum(mark)])[offsets]
    return pa.ListArray.from_arrays(pa.array(own.astype(np.int32)), values)


def of_rule(found: Detections, occurrences: pa.Table) -> pa.Table:
    """The table of one rule's detections, of which there is at least one."""
    row = _rows(found, occurrences)
    clocks = row < 0
    if clocks.any():
        constituents = _lists(found.offsets, ~clocks, pa.array(row[~clocks]))
        ticks = _lists(found.offsets, clocks, _ticks(found, clocks))
    else:
        offsets = pa.array(found.offsets.astype(np.int32))
        constituents = pa.ListArray.from_arrays(offsets, pa.array(row))
        ticks = _no_ticks(len(found))
    rule = pa.repeat(found.rule, len(found))
    table = _plain(rule, found.start, found.end, constituents, ticks)
    for name in found.keys.column_names:
        table = table.append_column(name, found.keys.column(name))
    return table


def _rows(found: Detections, occurrences: pa.Table) -> Int64:
    """For each entry its row in the table of occurrences; -1 for ticks and clock occurrences."""
    batches = [found.batches[event] for event in found.events]
    if all(batch is batches[0] for batch in batches) and batches[0].table is occurrences:
        return batches[0].row[found.event_row]
    rows = [
        batch.row if batch.table is occurrences else np.full(len(batch), -1) for batch in batches
    ]
    begin = np.cumsum([0, *map(len, rows)])
    return np.asarray(np.concatenate(rows)[begin[found.event_code] + found.event_row])


def _no_ticks(count: int) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), pa.array([], _TICK))


def _ticks(found: Detections, clocks: Bools) -> pa.Array:
    """The ticks and clock occurrences among the constituents."""
    code, at = found.event_code[clocks], found.event_row[clocks]
    time = np.empty(len(code), dtype=np.int64)
    for number, event in enumerate(found.events):
        table_rows.place(found.batches[event].time, at, code, number, time)
    names = pa.array([found.batches[event].event for event in found.events], pa.string())
    return pa.StructArray.from_arrays(
        [names.take(pa.array(code)), pa.array(time).cast(_TIMESTAMP)], fields=list(_TICK)
    )


def _plain(
    rule: pa.Array, start: Int64, end: Int64, constituents: pa.Array, ticks: pa.Array
) -> pa.Table:
    return pa.table(
        {
            "rule": rule,
            "start": pa.array(start).cast(_TIMESTAMP),
            "end": pa.array(end).cast(_TIMESTAMP),
            "constituents": constituents,
            "ticks": ticks,
        }
    )
