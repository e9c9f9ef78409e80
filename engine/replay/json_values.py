"""The values of JSON lines: their order, and key values as bytes that order and compare alike.

Order (`language.md` 4): null < false < true < numbers by value < strings; then arrays and objects.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from engine.values import Int64

LINE = " line"
"""The column of a batch's table that holds the text of the line (no field's name has a blank)."""

_NUMBER = struct.Struct(">QQ")
_FLOAT = struct.Struct(">d")
_BITS = struct.Struct(">Q")
_SIGN = 1 << 63
_ALL = (1 << 64) - 1


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
    order = [
        ([encode(parameters.get(name)) for name in names], line)
        for parameters, line in zip(fields, lines, strict=True)
    ]
    rank = np.empty(len(lines), dtype=np.int64)
    last, number = None, -1
    for i in sorted(range(len(lines)), key=lambda i: (groups[i], order[i])):
        number += last != (groups[i], order[i])
        last = (groups[i], order[i])
        rank[i] = number
    return rank


def greatest(groups: Int64, table: pa.Table, row: Int64) -> Int64:
    """The place of the greatest line of each group, in the order of `refine`."""
    rank = refine(groups, table.take(pa.array(row)))
    order = np.lexsort((rank, groups))
    found: Int64 = order[np.flatnonzero(np.diff(groups[order], append=-1))]
    return found
