"""The values of inputs: columns of occurrences as values of a script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.occurrences.comparison import whole
from tidegate.engine.detect.scripts.value_types import (
    OBJECTS,
    arrow_type,
    object_text,
    values_of,
)
from tidegate.rules.errors import InputError, Problem, word_place
from tidegate.rules.eventscript import tree
from tidegate.rules.eventscript.types import Array, Basic, Structure, Type

VALUE = "value"
"""The column of a value that is no structure."""


@dataclass(slots=True)
class InputRows:
    """The occurrences of one input in one bucket: `count` rows of a table. `first`: the place of
    the first. `values`, once they have been read."""

    read: tree.Input
    number: int
    column: str | None
    table: pa.Table
    count: int
    first: int
    values: list[Any] | None = None

    def listed(self) -> list[Any]:
        """The values. Raises `InputError`."""
        if self.values is None:
            self.values = input_values(self.read, self.column, self.table, self.count)
        return self.values

    def some(self, row: Int64) -> list[Any]:
        """The values of some rows. Raises `InputError`."""
        if self.values is not None or len(row) == self.count:
            return [self.listed()[n] for n in row.tolist()]
        if len(row) == 1:
            return input_values(self.read, self.column, self.table.slice(row[0], 1), 1)
        return input_values(self.read, self.column, self.table.take(pa.array(row)), len(row))


def input_values(read: tree.Input, chosen: str | None, table: pa.Table, count: int) -> list[Any]:
    """The values of an input, one for each of `count` rows. Raises `InputError`.

    A structure takes its fields from the columns of their names; other types take the column
    `chosen`, else `value`, else the only one.
    """
    try:
        if isinstance(read.type, Structure):
            return _fields(read.type, table, count)
        return _values(value_column(read, chosen, table), read.type)
    except (pa.ArrowException, OverflowError) as error:
        raise _unfit(read.name, read.type, str(error)) from None


def input_columns(read: tree.Input, chosen: str | None, table: pa.Table) -> list[pa.Array | None]:
    """The columns of the values of an input, one for each part of a basic type, in order; None for
    one with nulls, and for an array or an object. Raises `InputError` as `input_values`."""
    try:
        if isinstance(read.type, Structure):
            return [*_part_columns(read.type, table)]
        return [*_leaf_columns(value_column(read, chosen, table), read.type)]
    except (pa.ArrowException, OverflowError) as error:
        raise _unfit(read.name, read.type, str(error)) from None


def value_column(read: tree.Input, chosen: str | None, table: pa.Table) -> pa.ChunkedArray:
    """The column of an input whose type is no structure. Raises `InputError`."""
    name = chosen or (VALUE if VALUE in table.column_names else None)
    if name is None and table.num_columns == 1:
        name = table.column_names[0]
    if name not in table.column_names:
        known = ", ".join(table.column_names) or "none"
        raise _unfit(read.name, read.type, f"no column {name or VALUE}, there are: {known}")
    return table.column(name)


def without_null(read: tree.Input, chosen: str | None, table: pa.Table) -> npt.NDArray[np.bool_]:
    """Which rows have no null in what the input reads."""
    if isinstance(read.type, Structure):
        names = [name for name, _ in read.type.fields if name in table.column_names]
        columns = [table.column(name) for name in names]
    else:
        columns = [value_column(read, chosen, table)]
    whole = np.ones(len(table), np.bool_)
    for column in columns:
        if column.null_count:
            whole &= pc.is_valid(column).to_numpy()
    return whole


def filled(table: pa.Table) -> pa.Table:
    """A table with another value of its column in place of each null; if there is one."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        there = pc.is_valid(column).to_numpy() if column.null_count else np.ones(1, np.bool_)
        if not there.all() and there.any():
            column = column.take(pa.array(np.where(there, np.arange(len(there)), there.argmax())))
        columns[name] = column
    return pa.table(columns)


def as_column(column: pa.Array | pa.ChunkedArray, type_: Type) -> pa.Array | pa.ChunkedArray:
    """A column as one of `arrow_type`. Raises `pa.ArrowException` where it does not fit."""
    wanted, kind = arrow_type(type_), column.type
    if kind == OBJECTS and type_ == Basic.STRING:
        return pa.array([object_text(value) for value in column.to_pylist()], wanted)
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if kind == wanted:
        return column
    if pa.types.is_null(kind) or _fits(kind, type_):
        return column.cast(wanted, safe=type_ == Basic.LONG)
    raise pa.ArrowTypeError(f"a column of type {kind} is no {type_}")


def _part_columns(type_: Structure, table: pa.Table) -> Iterator[pa.Array | None]:
    for name, kind in type_.fields:
        if name in table.column_names:
            yield from _leaf_columns(table.column(name), kind)
        else:
            yield None


def _leaf_columns(column: pa.ChunkedArray, type_: Type) -> Iterator[pa.Array | None]:
    column = whole(column)
    if isinstance(type_, Basic) and type_ != Basic.OBJECT:
        column = as_column(column, type_)
        yield None if column.null_count else column
    elif isinstance(type_, Structure) and pa.types.is_struct(column.type):
        if column.null_count:
            yield None
        names = [column.type.field(n).name for n in range(column.type.num_fields)]
        parts = [pa.chunked_array([part]) for part in column.flatten()]
        yield from _part_columns(type_, pa.table(dict(zip(names, parts, strict=True))))
    else:
        _values(column, type_)  # raises where it does not fit
        yield None


def _fits(kind: pa.DataType, type_: Type) -> bool:
    types = pa.types
    if type_ == Basic.LONG:
        return bool(types.is_integer(kind))
    if type_ == Basic.DOUBLE:
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
    if type_ == Basic.TIME:
        return bool(types.is_timestamp(kind) or types.is_date(kind))
    return type_ == Basic.STRING and bool(types.is_large_string(kind))


def _fields(type_: Structure, table: pa.Table, count: int) -> list[Any]:
    if not type_.fields:
        return [()] * count
    lists = [
        _values(table.column(name), kind) if name in table.column_names else [None] * count
        for name, kind in type_.fields
    ]
    return [*zip(*lists, strict=True)]


def _values(column: pa.Array | pa.ChunkedArray, type_: Type) -> list[Any]:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_null(column.type):
        return [None] * len(column)
    if column.type == OBJECTS and type_ == Basic.OBJECT:
        return values_of(column.storage, type_)
    if type_ == Basic.OBJECT:
        return [value if value.is_valid else None for value in column]
    if isinstance(type_, Structure):
        if not pa.types.is_struct(column.type):
            raise pa.ArrowTypeError(f"a column of type {column.type} is no {type_}")
        names = [column.type.field(n).name for n in range(column.type.num_fields)]
        fields = pa.table(dict(zip(names, column.flatten(), strict=True)))
        rows = _fields(type_, fields, len(column))
        return _where(rows, column)
    if isinstance(type_, Array):
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            raise pa.ArrowTypeError(f"a column of type {column.type} is no {type_}")
        flat = _values(column.flatten(), type_.of)
        ends = [0, *pc.cumulative_sum(pc.fill_null(pc.list_value_length(column), 0)).to_pylist()]
        return _where([flat[a:b] for a, b in pairwise(ends)], column)
    return values_of(as_column(column, type_), type_)


def _where(values: list[Any], column: pa.Array) -> list[Any]:
    """The values, null where the column is."""
    if not column.null_count:
        return values
    return [v if there else None for v, there in
            zip(values, column.is_valid().to_pylist(), strict=True)]  # fmt: skip


def _unfit(name: str, type_: Type, said: str) -> InputError:
    problem = Problem(
        "script-input",
        f"the occurrences do not fit input {name} of type {type_}: {said}",
        word_place("<occurrences>"),
        "name the column with `value:`, or give the input the type of the column",
    )
    return InputError([problem])
