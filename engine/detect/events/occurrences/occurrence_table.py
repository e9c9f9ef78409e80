"""A table of occurrences as columns in order of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.engine.core.values import Batch, Int64
from tidegate.engine.detect.events.kernels import table_rows
from tidegate.engine.detect.events.occurrences.comparison import whole
from tidegate.engine.detect.events.occurrences.instances import Int32
from tidegate.rules.errors import InputError, Problem, word_place

YEAR_1, YEAR_9999 = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and the last instant that a timestamp can show, in microseconds."""
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)


@dataclass(frozen=True, slots=True)
class OccurrenceTable:
    """The n occurrences of `table` in order of time. Occurrence n is of event type names[code[n]],
    at time[n] in microseconds, in row order[n] of the table. `order` is empty if the table is in
    order of time.
    """

    table: pa.Table
    names: tuple[str, ...]
    code: Int32
    time: Int64
    order: Int64

    def __len__(self) -> int:
        return len(self.time)

    def rows(self, place: Int64) -> Int64:
        """The rows of the table of the occurrences at `place`."""
        return self.order[place] if len(self.order) else place

    def batch(self, event: str, place: Int64) -> Batch:
        """The occurrences at `place`, all of one event type."""
        return Batch(event, self.time[place], self.rows(place), self.table)

    @property
    def whole(self) -> Batch:
        """All occurrences, whatever their event type."""
        row = self.order if len(self.order) else np.arange(len(self))
        return Batch("", self.time, row, self.table)

    def sorted(self, values: Int32) -> Int32:
        """What the rows of the table have, in order of time."""
        return values[self.order] if len(self.order) else values


def read_occurrences(occurrences: pa.Table) -> OccurrenceTable:
    """The occurrences that `tidegate.detect` was given. Raises `InputError`."""
    if not isinstance(occurrences, pa.Table):
        given = type(occurrences).__name__
        hint = "pa.Table.from_batches([batch]), pa.Table.from_pandas(frame)"
        raise wrong("no-table", f"occurrences are a {given}, not a pyarrow.Table", hint)
    occurrences = _taken_by_arrow(occurrences)
    names = occurrences.column_names
    if missing := {"event", "time"} - {*names}:
        raise wrong("no-column", f"occurrences lack the column {min(missing)}")
    if twice := {name for name in names if names.count(name) > 1}:
        raise wrong("two-columns", f"occurrences have several columns {min(twice)}")
    time, events = micros(occurrences.column("time")), _events(occurrences.column("event"))
    code = events.indices.to_numpy().astype(np.int32)
    order = np.empty(0, np.int64)
    if not table_rows.ascending(time):
        order = np.argsort(time, kind="stable")
        time, code = frozen(time[order]), code[order]
    return OccurrenceTable(occurrences, tuple(events.dictionary.to_pylist()), code, time, order)


def wrong(code: str, message: str, hint: str = "") -> InputError:
    """The error that says what is wrong with the occurrences."""
    return InputError([Problem(code, message, word_place("<occurrences>"), hint)])


def _taken_by_arrow(occurrences: pa.Table) -> pa.Table:
    """With columns that Arrow can take rows of: views of strings as strings; dictionaries that do
    not make one as their values."""
    schema = occurrences.schema
    for i, field in enumerate(schema):
        if pa.types.is_string_view(field.type):
            schema = schema.set(i, field.with_type(pa.large_string()))
        elif pa.types.is_dictionary(field.type) and not _is_one(occurrences.column(i)):
            schema = schema.set(i, field.with_type(field.type.value_type))
    return occurrences if schema.equals(occurrences.schema) else occurrences.cast(schema)


def _is_one(column: pa.ChunkedArray) -> bool:
    """Whether the dictionaries of the chunks make one. One with a null entry does not, nor do those
    that have more entries together than the indices can count."""
    dictionaries = [chunk.slice(0, 0) for chunk in column.chunks]
    try:
        pa.chunked_array(dictionaries, column.type).combine_chunks()
    except pa.ArrowInvalid:
        return False
    return True


def micros(column: pa.ChunkedArray) -> Int64:
    """The instants that a column `time` says, in microseconds. Raises `InputError`."""
    if column.null_count:
        raise wrong("null", "event and time of an occurrence cannot be null")
    try:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz))
        elif not pa.types.is_integer(column.type):
            raise wrong("time-type", f"column time is {column.type}, not int64 or a timestamp")
        found = frozen(whole(column.cast(pa.int64())).to_numpy())
    except pa.ArrowInvalid as error:
        hint = "an instant is an int64 count of microseconds; round finer ones first"
        raise wrong("time", f"column time has values that are no instants: {error}", hint) from None
    outside = (found < YEAR_1) | (found > YEAR_9999)
    if outside.any():
        message = f"column time has {found[outside][0]} us, which is not in the years 1 to 9999"
        raise wrong("time", message, "an instant is an int64 count of microseconds since 1970")
    return found


def _events(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """The event types, a code for each name."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not any(is_text(kind) for is_text in _TEXTS):
        raise wrong("event-type", f"column event is {column.type}, not string or dictionary")
    if kind == column.type:
        column = column.cast(pa.large_string()).dictionary_encode()
    column = whole(column)
    if column.dictionary.null_count or len(column.dictionary.unique()) < len(column.dictionary):
        column = column.cast(pa.large_string()).dictionary_encode()  # Arrow allows both
    if column.null_count:
        raise wrong("null", "event and time of an occurrence cannot be null")
    return column


def frozen(values: Int64) -> Int64:
    """The same values, not to be written, as Arrow's own memory is: a kernel that reads times is
    compiled for these alone."""
    values = values.view()
    values.flags.writeable = False
    return values
