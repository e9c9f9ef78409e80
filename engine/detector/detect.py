"""Detection over a table, without an engine: `engine.detect`."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import rules
from engine.detector import listing
from engine.detector.clocks import clock_batches
from engine.detector.detector import FOREVER, Detector
from engine.detector.edges import BEGIN, begun, edge_micros
from engine.detector.instances import Bools
from engine.values import Batch, Carried, Detections, Int64
from rules.errors import InputError, Place, Problem
from rules.kinds import did_you_mean
from rules.model import ClockEvent, Rulebook
from rules.unbuilt import SIMULATED

_TIMESTAMP = pa.timestamp("us", "UTC")
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_TICK = pa.struct([("event", pa.string()), ("time", _TIMESTAMP)])


def detect(rulebook: str | os.PathLike[str] | Rulebook, occurrences: pa.Table) -> pa.Table:
    """Every detection of every enabled rule over a table of occurrences, without Spark or store.

    `rulebook`: a path, YAML text or a `Rulebook`. `occurrences`, in any order: `event` (string or
    dictionary), `time` (int64 microseconds since the epoch, or a timestamp) and the parameters as
    columns. Rules are active from the first occurrence on. A transaction at T is two occurrences:
    its beginning at T - 1 us and its end, which its plain name means too, at T + 1 us.

    Returns `rule`, the key columns of all rules, `start`, `end` (timestamp[us, UTC]),
    `constituents` (list<int64>: row numbers in `occurrences`) and `ticks`
    (list<struct<event, time>>), ordered by end, rule, key, start, constituents.

    Raises `InputError` for a rulebook or occurrences that are wrong.
    """
    book = rulebook if isinstance(rulebook, Rulebook) else rules.load(rulebook, features=SIMULATED)
    occurrences = _without_views(occurrences)
    time = _times(occurrences)
    batches = _batches(book, occurrences, time)
    first, last = (int(time.min()), int(time.max())) if len(time) else (0, 0)
    seen = min([first, *(int(batch.time[0]) for batch in batches.values())])
    detector = Detector(book, dict.fromkeys(book.rules, seen))
    if len(time):
        batches |= clock_batches(book, first, last)
    found, _ = detector.step(Carried(), batches, FOREVER, last)
    return _result(book, found, occurrences)


def _without_views(occurrences: pa.Table) -> pa.Table:
    """Views of strings, which Arrow cannot take rows of, as strings."""
    schema = occurrences.schema
    for i, field in enumerate(schema):
        if pa.types.is_string_view(field.type):
            schema = schema.set(i, field.with_type(pa.large_string()))
    return occurrences if schema.equals(occurrences.schema) else occurrences.cast(schema)


def _times(occurrences: pa.Table) -> Int64:
    names = occurrences.column_names
    if missing := {"event", "time"} - {*names}:
        raise _wrong("no-column", f"occurrences lack the column {min(missing)}")
    if twice := {name for name in names if names.count(name) > 1}:
        raise _wrong("two-columns", f"occurrences have several columns {min(twice)}")
    column = occurrences.column("time")
    if column.null_count:
        raise _wrong("null", "event and time of an occurrence cannot be null")
    try:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz))
        elif not pa.types.is_integer(column.type):
            raise _wrong("time-type", f"column time is {column.type}, not int64 or a timestamp")
        found: Int64 = column.cast(pa.int64()).combine_chunks().to_numpy()
    except pa.ArrowInvalid as error:
        hint = "an instant is an int64 count of microseconds; round finer ones first"
        raise _wrong(
            "time", f"column time has values that are no instants: {error}", hint
        ) from None
    found.flags.writeable = False  # as Arrow's own memory: kernels are compiled for one of both
    return found


def _batches(book: Rulebook, occurrences: pa.Table, time: Int64) -> dict[str, Batch]:
    """The occurrences by event type, in order of time; their rows are those of the table. One of a
    transaction gives its beginning and its end."""
    column = _events(occurrences)
    code = column.indices.to_numpy().astype(np.int32)
    in_order = (time[1:] >= time[:-1]).all()
    order = np.empty(0, np.int64) if in_order else np.argsort(time, kind="stable")
    names = column.dictionary.to_pylist()
    row, times, bounds = listing.split(code, time, order, len(names))
    batches = {}
    for event, first, end in zip(names, bounds, bounds[1:], strict=False):
        if end > first:
            _check_event(book, event)
            batch = Batch(event, times[first:end], row[first:end], occurrences)
            batches[event] = batch
            if edge := edge_micros(book, event):
                batches[event] = replace(batch, time=batch.time + edge)
            if event in begun(book):
                batches[BEGIN + event] = replace(batch, time=batch.time - edge)
    return batches


def _events(occurrences: pa.Table) -> pa.DictionaryArray:
    """The event types, a code for each name."""
    column = occurrences.column("event")
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not any(is_text(kind) for is_text in _TEXTS):
        raise _wrong("event-type", f"column event is {column.type}, not string or dictionary")
    if kind == column.type:
        column = column.cast(pa.large_string()).dictionary_encode()
    column = column.combine_chunks()
    if column.dictionary.null_count or len(column.dictionary.unique()) < len(column.dictionary):
        column = column.cast(pa.large_string()).dictionary_encode()  # Arrow allows both
    if column.null_count:
        raise _wrong("null", "event and time of an occurrence cannot be null")
    return column


def _check_event(book: Rulebook, event: str) -> None:
    if event in book.events and not isinstance(book.events[event], ClockEvent):
        return
    if event in book.events or event in book.rules:
        raise _wrong("not-an-occurrence", f"{event} cannot be given as an occurrence")
    raise _wrong("unknown-event", f"unknown event {event!r}", did_you_mean(event, book.events))


def _wrong(code: str, message: str, hint: str = "") -> InputError:
    return InputError([Problem(code, message, Place("<occurrences>"), hint)])


def _result(book: Rulebook, found: tuple[Detections, ...], occurrences: pa.Table) -> pa.Table:
    names = list(dict.fromkeys(n for rule in book.rules.values() for n in rule.key_names))
    parts = [_table(detections, occurrences) for detections in sorted(found, key=lambda d: d.rule)]
    empty = _plain(
        pa.nulls(0, pa.string()),
        np.empty(0, np.int64),
        np.empty(0, np.int64),
        pa.array([], pa.list_(pa.int64())),
        pa.array([], pa.list_(_TICK)),
    )
    table = pa.concat_tables([empty, *parts], promote_options="permissive")
    order = pc.sort_indices(table, sort_keys=[("end", "ascending")]) if len(parts) > 1 else None
    table = table if order is None else table.take(order)
    keys = {
        n: table.column(n)
        if n in table.column_names
        else pa.nulls(len(table), _key_type(book, n, occurrences.schema))
        for n in names
    }
    return pa.table(
        {"rule": table.column("rule"), **keys}
        | {n: table.column(n) for n in ("start", "end", "constituents", "ticks")}
    )


def _key_type(book: Rulebook, name: str, schema: pa.Schema) -> pa.DataType:
    """The type of a key column in which nothing is detected."""
    for rule in book.rules.values():
        for fields in rule.per.values():
            for key, field in zip(rule.key_names, fields, strict=True):
                if key == name and field in schema.names:
                    return schema.field(field).type
    return pa.null()


def _lists(offsets: Int64, mark: Bools, values: pa.Array) -> pa.Array:
    """The lists of those of `values` whose entries are marked."""
    own = np.concatenate([[0], np.cumsum(mark)])[offsets]
    return pa.ListArray.from_arrays(pa.array(own.astype(np.int32)), values)


def _table(found: Detections, occurrences: pa.Table) -> pa.Table:
    row = np.full(len(found.event_row), -1)
    for number, event in enumerate(found.events):
        if found.batches[event].table is occurrences:
            rows = found.batches[event].row
            listing.place(rows, found.event_row, found.event_code, number, row)
    clocks = row < 0
    if clocks.any():
        constituents = _lists(found.offsets, ~clocks, pa.array(row[~clocks]))
        ticks = _lists(found.offsets, clocks, _ticks(found, clocks))
    else:
        offsets = pa.array(found.offsets.astype(np.int32))
        constituents = pa.ListArray.from_arrays(offsets, pa.array(row))
        ticks = pa.ListArray.from_arrays(
            pa.array(np.zeros(len(found) + 1, np.int32)), pa.array([], _TICK)
        )
    rule = pa.repeat(found.rule, len(found))
    table = _plain(rule, found.start, found.end, constituents, ticks)
    for name in found.keys.column_names:
        table = table.append_column(name, found.keys.column(name))
    return table


def _ticks(found: Detections, clocks: Bools) -> pa.Array:
    """The ticks and clock occurrences among the constituents."""
    code, at = found.event_code[clocks], found.event_row[clocks]
    time = np.empty(len(code), dtype=np.int64)
    for number, event in enumerate(found.events):
        listing.place(found.batches[event].time, at, code, number, time)
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
