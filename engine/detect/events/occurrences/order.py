"""The order of values (`language.md` 4): null < false < true < numbers by value < strings."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.text.times import python_values
from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.kernels import ties

_COUNTED_RANGE = 16  # times the number of values: so far counting is cheaper than sorting
_LARGEST = np.iinfo(np.int64).max


def codes(column: pa.ChunkedArray | pa.Array) -> Int64:
    """A dense code for each value, in the order of the values; equal values have equal codes."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_null(column.type):
        return np.zeros(len(column), dtype=np.int64)
    if pa.types.is_nested(column.type):
        texts = [None if v is None else json.dumps(v, default=str, sort_keys=True)
                 for v in python_values(column)]  # fmt: skip
        column = pa.array(texts, pa.string())
    if pa.types.is_int64(column.type) and not column.null_count:
        return _dense(column.to_numpy()) + 1
    if pa.types.is_string(column.type):
        encoded = column.dictionary_encode()  # there are mostly fewer texts than rows
        index = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()
        ranked: Int64 = np.append(_ranks(encoded.dictionary), 0)[index]
        return ranked
    return _ranks(column)


def _ranks(column: pa.Array) -> Int64:
    ranked = pc.rank(column, sort_keys="ascending", tiebreaker="dense")
    found: Int64 = ranked.to_numpy().astype(np.int64)
    if column.null_count:
        found[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


def greatest(groups: Int64, table: pa.Table, row: Int64) -> Int64:
    """The place of the greatest row of each group, by the table's columns in order of their names;
    of equal rows the last.

    groups[n] numbers the group of each row[n] of `table`. A column is read only where those before
    it left several rows equal.
    """
    chosen = np.full(int(groups.max(initial=-1)) + 1, -1)
    left, place = ties.contest(groups, np.arange(len(groups)), np.zeros_like(groups), chosen)
    for name in sorted(table.column_names):
        for column in _flat(table.column(name)) if len(place) else ():
            if column.null_count:
                left, place = ties.contest(
                    left, place, comparable(column.is_valid(), row[place]), chosen
                )
            left, place = ties.contest(left, place, comparable(column, row[place]), chosen)
    return chosen[chosen >= 0]


def comparable(column: pa.ChunkedArray, row: Int64) -> Int64:
    """Numbers in the order of some rows' values, null anywhere."""
    if _plain(column.type):
        return _ordered(_words(column)[row])
    return codes(column.take(pa.array(row)))


def numbers(column: pa.ChunkedArray) -> Int64:
    """The same of all rows."""
    return _ordered(_words(column)) if _plain(column.type) else codes(column)


def _plain(kind: pa.DataType) -> bool:
    """Whether the values are ordered as those of numpy are."""
    return bool(
        pa.types.is_floating(kind)
        or pa.types.is_signed_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_timestamp(kind)
    )


def _words(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if column.null_count:
        column = column.fill_null(pa.scalar(0).cast(column.type))
    return np.asarray(column.to_numpy())


def _ordered(values: npt.NDArray[Any]) -> Int64:
    if values.dtype.kind != "f":
        return values.astype(np.int64, copy=False)
    values = values.astype(np.float64) + 0.0  # -0.0 is 0.0
    bits = values.view(np.int64)
    return np.asarray(np.where(np.isnan(values), _LARGEST, bits ^ (bits >> 63 & _LARGEST)))


def refine(groups: Int64, table: pa.Table) -> Int64:
    """Rank rows within their group by the table's columns, in order of their names.

    groups[n] numbers the group of each row; the result orders the rows of one group, equal rows
    alike (and says nothing about rows of two groups).
    """
    rank = _dense(groups)
    for name in sorted(table.column_names):
        count = int(rank.max(initial=-1)) + 1
        if count == len(rank):
            break
        for column in _flat(table.column(name)):
            code = codes(column)
            rank = _dense(rank * (int(code.max(initial=0)) + 1) + code)
    return rank


def _dense(values: Int64) -> Int64:
    """Consecutive codes from 0 in the order of the values; sorts only where nothing else helps."""
    if not len(values):
        return values
    if (values[1:] >= values[:-1]).all():
        found: Int64 = np.cumsum(np.diff(values, prepend=values[0]) != 0)
        return found
    low, high = int(values.min()), int(values.max())
    if high - low <= _COUNTED_RANGE * len(values):
        seen = np.zeros(high - low + 1, dtype=np.bool_)
        seen[values - low] = True
        return (np.cumsum(seen, dtype=np.int32)[values - low] - 1).astype(np.int64)
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _flat(column: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    """A struct's fields in order of their names, anything else as it is."""
    if not pa.types.is_struct(column.type):
        return [column]
    fields = sorted(range(column.type.num_fields), key=lambda i: str(column.type.field(i).name))
    inner = column.flatten()
    return [pc.is_valid(column), *(part for i in fields for part in _flat(inner[i]))]
