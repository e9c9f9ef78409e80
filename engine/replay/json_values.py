"""The values of JSON lines as columns that order and compare as `language.md` 4 has it:
null < false < true < numbers by value < strings; then arrays and objects."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.occurrences import order

EVENT, TIME, LINE = " event", " time", " line"
"""The columns of a table of lines beside key fields (no such name has a blank): code of the event
type, microseconds, text of the line."""

ENCODED = pa.binary()
"""The type of a column whose values are encoded."""
_PLAIN = (pa.int64(), pa.string(), pa.null())  # order and compare as they are

_NUMBER = struct.Struct(">QQ")
_FLOAT = struct.Struct(">d")
_BITS = struct.Struct(">Q")
_SIGN = 1 << 63
_ALL = (1 << 64) - 1


def column(values: Sequence[Any]) -> pa.Array:
    """JSON values as a column: integers and strings as they are, anything else encoded."""
    try:
        found = pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # of several kinds
        found = None
    if found is not None and found.type in _PLAIN:
        return found
    return encoded(values)


def common(types: Iterable[pa.DataType]) -> pa.DataType:
    """The type that columns of these types have together."""
    known = {*types} - {pa.null()}
    return known.pop() if len(known) == 1 else ENCODED if known else pa.null()


def typed(table: pa.Table, types: Mapping[str, pa.DataType]) -> pa.Table:
    """A table, columns of it in their `common` type."""
    for name, type_ in types.items():
        values = table.column(name)
        if values.type != type_:
            encoding = type_ == ENCODED
            values = encoded(values.to_pylist()) if encoding else values.cast(type_)
            table = table.set_column(table.column_names.index(name), name, values)
    return table


def encoded(values: Iterable[Any]) -> pa.Array:
    """JSON values as a column of bytes."""
    return pa.array(map(encode, values), ENCODED)


def encode(value: Any) -> bytes:
    """A JSON value as bytes: equal values alike (1 and 1.0), in the order of the values."""
    if isinstance(value, str):
        return b"\x04" + value.encode("utf-8", "surrogatepass")
    if value is None:
        return b"\x00"
    if isinstance(value, bool):
        return b"\x02" if value else b"\x01"
    if isinstance(value, int | float):
        # The nearest double, its bits made to order as integers do; then what is left of an integer
        near = float(value) + 0.0
        bits = _BITS.unpack(_FLOAT.pack(near))[0]
        bits = bits ^ _ALL if bits & _SIGN else bits | _SIGN
        rest = value - int(near) if isinstance(value, int) else 0
        return b"\x03" + _NUMBER.pack(bits, rest + _SIGN)
    return b"\x05" + orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def decode(code: bytes) -> Any:
    """The value of `encode`; a whole number as an integer."""
    kind, rest = code[0], code[1:]
    if kind == 3:
        bits, more = _NUMBER.unpack(rest)
        bits = bits & ~_SIGN if bits & _SIGN else bits ^ _ALL
        near = _FLOAT.unpack(_BITS.pack(bits))[0]
        return int(near) + more - _SIGN if near == int(near) else near
    if kind == 4:
        return rest.decode("utf-8", "surrogatepass")
    if kind == 5:
        return orjson.loads(rest)
    return (None, False, True)[kind]


def refine(groups: Int64, table: pa.Table) -> Int64:
    """Rank lines within their groups by their parameters, column by column in name order (S1);
    equal ones by their text, so that nothing depends on the order of lines."""
    lines = table.column(LINE).to_pylist()
    fields = [orjson.loads(line) for line in lines]
    names = sorted({name for parameters in fields for name in parameters} - {"event", "time"})
    columns = [column([parameters.get(name) for parameters in fields]) for name in names]
    rank = groups
    for values in (*columns, pa.array(lines, pa.binary())):
        rank = order.refine(rank, pa.table({"": values}))
    return rank


def greatest(groups: Int64, table: pa.Table, row: Int64) -> Int64:
    """The place of the greatest line of each group, in the order of `refine`."""
    rank = refine(groups, table.take(pa.array(row)))
    place = np.lexsort((rank, groups))
    found: Int64 = place[np.flatnonzero(np.diff(groups[place], append=-1))]
    return found
