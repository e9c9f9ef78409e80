"""Makes the parameter relation of detections, by the column (semantics 5).

Example: a detection of `a ; b` has two rows, one with the parameters of a and one with those of b.
The parameters that an event type does not have are null.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.columns.decimals import as_doubles
from tidegate.engine.core.parameters import INSTANT, SAMPLE, SIGNAL_OF, VERSION_OF
from tidegate.engine.core.values import Batch, Detections, Int64
from tidegate.engine.evaluate.shape import Shape

_OF_TICKS = {SAMPLE: SAMPLE}
_SOURCES = {VERSION_OF: ("version", pa.int64()), SIGNAL_OF: ("signal", pa.string())}
ABSENT = np.iinfo(np.int64).min  # in label_spans: the label has no part in this detection


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a relation. Row i belongs to detection firing[i] and shows entry[i], null for a
    detection without constituents. `groups`: the entries of each event type. place[i]: the index of
    entry[i] in the concatenated groups; None if that is i."""

    firing: Int64
    entry: pa.Array
    groups: tuple[tuple[str, Int64], ...]
    place: pa.Array | None


def parameter_relation(
    shape: Shape, detections: Detections, ids: pa.StringArray, wanted: pa.Schema
) -> pa.Table:
    """The relation of all detections: a row a constituent, in order of detections and entries. A
    detection without constituents has one row of nulls.

    ids[n]: the firing ids in hex. `wanted`: the columns of the shape that the relation holds; its
    `old` may have fewer fields.
    """
    d, rows = detections, _rows(detections)
    firing = pa.array(rows.firing)
    occurred = d.gathered(lambda _, batch: batch.time, np.empty(len(d.event_row), np.int64))
    called = pa.array([d.batches[event].event for event in d.events], pa.string())
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        "firing_id": ids.take(firing),
        "event_type": called.take(pa.array(d.event_code).take(rows.entry)),
        "label": _labels(d).take(rows.entry),
        "occurred_at": _instants(occurred).take(rows.entry),
        "started_at": _instants(d.start).take(firing),
        "detected_at": _instants(d.end).take(firing),
    }
    for field in shape.key:
        columns[field.name] = cast_to(d.keys[field.name].take(firing), field.type)
    for label, (start, end) in d.label_spans.items():
        columns[f"{label}_start"] = _instants(start).take(firing)
        columns[f"{label}_end"] = _instants(end).take(firing)
    for field in wanted:
        if field.name not in columns:
            columns[field.name] = _parameter(shape, d, rows, field)
    return pa.table([columns[name] for name in wanted.names], schema=wanted)


def constituent_sources(detections: Detections) -> pa.Table | None:
    """The sources of the rows of the relation (`Firings.sources`). None if no event type of the
    detections has any."""
    d = detections
    events = [d.batches[event].table.column_names for event in d.events]
    found = [name for name in _SOURCES if any(name in names for names in events)]
    if not found:
        return None
    rows = _rows(d)
    columns = {
        shown: _source(d, rows, name, kind) if name in found else pa.nulls(len(rows.firing), kind)
        for name, (shown, kind) in _SOURCES.items()
    }
    return pa.table(columns)


def no_sources(count: int) -> pa.Table:
    """The sources of so many rows of which nobody knows any."""
    return pa.table({shown: pa.nulls(count, kind) for shown, kind in _SOURCES.values()})


def _source(d: Detections, rows: _Rows, name: str, kind: pa.DataType) -> pa.Array:
    pieces = []
    for event, entries in rows.groups:
        batch = d.batches[event]
        if name in batch.table.column_names:
            taken = batch.table[name].take(pa.array(batch.row[d.event_row[entries]]))
            pieces.append(cast_to(taken, kind))
        else:
            pieces.append(pa.nulls(len(entries), kind))
    column = pa.concat_arrays(pieces) if pieces else pa.nulls(0, kind)
    if rows.place is not None:
        return column.take(rows.place)
    return column if pieces else pa.nulls(len(rows.firing), kind)


def _rows(d: Detections) -> _Rows:
    counts = np.diff(d.offsets)
    firing = np.repeat(np.arange(len(d)), np.maximum(counts, 1))
    entry = pa.array(np.arange(len(d.event_row)))
    if len(firing) > len(entry):
        filled = np.repeat(counts > 0, np.maximum(counts, 1))
        entry = pa.array(np.cumsum(filled) - 1, mask=~filled)
    groups = tuple(
        (d.events[code], np.flatnonzero(d.event_code == code)) for code in np.unique(d.event_code)
    )
    if len(groups) <= 1:
        return _Rows(firing, entry, groups, None if entry.null_count == 0 else entry)
    place = np.empty(len(d.event_row), np.int64)
    place[np.concatenate([entries for _, entries in groups])] = np.arange(len(d.event_row))
    return _Rows(firing, entry, groups, pa.array(place).take(entry))


def _parameter(shape: Shape, d: Detections, rows: _Rows, field: pa.Field) -> pa.Array:
    """One column: taken from the tables of the event types, then put in the order of the rows."""
    pieces = [
        _piece(shape, d.batches[event], event, d.event_row[entries], field)
        for event, entries in rows.groups
    ]
    column = pa.concat_arrays(pieces) if pieces else pa.nulls(0, field.type)
    if rows.place is not None:
        return column.take(rows.place)
    return column if pieces else pa.nulls(len(rows.firing), field.type)


def _piece(shape: Shape, batch: Batch, event: str, rows: Int64, field: pa.Field) -> pa.Array:
    places = shape.columns.get(event, _OF_TICKS)
    for name in batch.table.column_names:
        if places.get(name) == field.name:
            return cast_to(batch.table[name].take(pa.array(batch.row[rows])), field.type)
    return pa.nulls(len(rows), field.type)


def cast_to(values: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """Values in the type that columns of one name have in common."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if values.type == kind:
        return values
    if pa.types.is_struct(kind):
        fields = list(_struct_fields(values, kind))
        return pa.StructArray.from_arrays(fields, fields=list(kind.fields), mask=pc.is_null(values))
    if pa.types.is_decimal(values.type) and pa.types.is_float64(kind):
        return as_doubles(values)
    return pc.cast(values, kind, safe=False)


def _struct_fields(values: pa.StructArray, kind: pa.StructType) -> Iterator[pa.Array]:
    known = {field.name.lower(): n for n, field in enumerate(values.type.fields)}
    flat = values.flatten()
    for field in kind.fields:
        n = known.get(field.name.lower())
        yield pa.nulls(len(values), field.type) if n is None else cast_to(flat[n], field.type)


def _labels(d: Detections) -> pa.Array:
    if d.label is None:
        return pa.nulls(len(d.event_row), pa.string())
    return pa.array(d.labels, pa.string()).take(pa.array(d.label, mask=d.label < 0))


def _instants(times: Int64) -> pa.Array:
    return pa.array(times, mask=times == ABSENT).cast(INSTANT)
