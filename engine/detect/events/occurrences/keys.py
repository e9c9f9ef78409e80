"""Key values as dense codes. The codes are valid for one step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.values import Int64
from tidegate.engine.detect.events.occurrences import order
from tidegate.engine.detect.events.occurrences.comparison import united, whole
from tidegate.engine.detect.events.occurrences.instances import Int32

Columns = Sequence[pa.ChunkedArray]

SPREAD_MAX = 4
"""Integers are their own codes if their range is at most this many times their number."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one step: code c (from 1) stands for row c - 1 of `columns`. `low`: where the
    only column is all integers from one on, that one."""

    columns: tuple[pa.Array, ...]
    count: int
    low: int | None = None

    @property
    def chunked(self) -> Columns:
        """The columns, as they are encoded again."""
        return [pa.chunked_array([column]) for column in self.columns]

    def values(self, code: Int32) -> list[pa.Array]:
        """The key columns of some codes; null where the code is `EVERY_KEY` or past the last."""
        none = (code < 1) | (code > self.count)
        mask = none if none.any() else None
        if self.low is not None:
            (column,) = self.columns
            return [pa.array(np.add(code, self.low - 1, dtype=np.int64), column.type, mask)]
        index = pa.array(code - np.int32(1), mask=mask)
        return [column.take(index) for column in self.columns]

    def known_codes(self, chunks: Sequence[Columns]) -> list[Int32] | None:
        """The codes of each chunk's rows, where it is seen at a glance that all are among these
        keys; else None: they are to be encoded together.

        >>> keys = Keys((pa.array([7, 8, 9]),), 3, low=7)
        >>> keys.known_codes([[pa.chunked_array([[9, 7]])]])
        [array([3, 1], dtype=int32)]
        """
        if self.low is None:
            return None
        found = []
        for (column,) in chunks:
            if column.type != self.columns[0].type or column.null_count or not len(column):
                return None
            values = whole(column).to_numpy().astype(np.int64, copy=False)
            if values.min() < self.low or values.max() >= self.low + self.count:
                return None
            found.append(_from_one(values, self.low))
        return found

    def codes_of(self, columns: Sequence[pa.Array]) -> Int32:
        """The codes of some keys. A key that is not among these has the code 0."""
        chunks = [[pa.chunked_array([c]) for c in part] for part in (self.columns, columns)]
        (own, other), joint = encode(chunks)
        code = np.zeros(joint.count + 1, dtype=np.int32)
        code[own] = np.arange(1, self.count + 1)
        return code[other]

    def by_name(self, names: Sequence[str]) -> Keys:
        """The same keys with their columns in the order of `names`, sorted."""
        order = sorted(range(len(self.columns)), key=lambda i: names[i])
        return Keys(tuple(self.columns[i] for i in order), self.count)

    def ranks(self, code: Int32) -> Int64:
        """For each code the rank of its key. Keys are ordered column by column, by value."""
        seen = np.zeros(int(code.max(initial=0)) + 1, dtype=np.bool_)
        seen[code] = True
        present = np.flatnonzero(seen).astype(np.int32)
        rank = np.zeros(len(present), dtype=np.int64)
        for column in self.values(present):
            ordered = order.codes(column)
            rank = rank * (int(ordered.max(initial=0)) + 1) + ordered
            rank = np.unique(rank, return_inverse=True)[1].astype(np.int64)
        of_each = np.zeros(len(seen), dtype=np.int64)
        of_each[present] = rank
        return of_each[code]


NO_KEYS = Keys((), 0)


def encode(chunks: Sequence[Columns]) -> tuple[list[Int32], Keys]:
    """The codes of each chunk's rows, and the keys that the codes stand for.

    A chunk is a list of key columns. Two chunks may have different types: equal numbers are one
    key. Null is a key value. Raises `KeyTypeError`.

    >>> left, right = pa.chunked_array([["x", "y"]]), pa.chunked_array([["y"]])
    >>> (left, right), keys = encode([[left], [right]])
    >>> left, right, keys.columns[0].to_pylist()
    (array([1, 2], dtype=int32), array([2], dtype=int32), ['x', 'y'])
    """
    sizes = np.cumsum([0, *(len(chunk[0]) for chunk in chunks)])
    single = [_encode_column([chunk[c] for chunk in chunks]) for c in range(len(chunks[0]))]
    codes, column, low = single[0]
    columns = [column]
    for more, column, _ in single[1:]:
        joint = (codes.astype(np.int64) - 1) * len(column) + more - 1
        encoded = pa.array(joint).dictionary_encode()
        codes = _from_one(encoded.indices.to_numpy(), 0)
        first, second = np.divmod(encoded.dictionary.to_numpy(), max(len(column), 1))
        columns = [*(c.take(pa.array(first)) for c in columns), column.take(pa.array(second))]
    parts = [codes[a:b] for a, b in pairwise(sizes)]
    return parts, Keys(tuple(columns), len(columns[0]), low if len(columns) == 1 else None)


def _from_one(values: Int32 | Int64, low: int) -> Int32:
    """The codes of values: value `low` has the code 1."""
    codes = np.empty(len(values), dtype=np.int32)
    return np.subtract(values, low - 1, out=codes, casting="unsafe")


def _encode_column(parts: list[pa.ChunkedArray]) -> tuple[Int32, pa.Array, int | None]:
    """The codes, from 1 on, of all parts together, and the values that they stand for: all integers
    from one on (which is that), or any (None). Raises `KeyTypeError`."""
    joined = united(parts)
    if pa.types.is_floating(joined.type):
        joined = pc.add(joined, 0.0)  # -0.0 is 0.0
        if pc.any(odd := pc.is_nan(joined)).as_py():
            joined = pc.if_else(odd, pa.scalar(math.nan, joined.type), joined)  # there is one NaN
    if own := _own_codes(joined):
        values, low, column = own
        return _from_one(values, low), column, low
    if pa.types.is_null(joined.type):
        return np.ones(len(joined), dtype=np.int32), pa.nulls(1), None
    encoded = whole(joined).dictionary_encode(null_encoding="encode")
    return _from_one(encoded.indices.to_numpy(), 0), encoded.dictionary, None


def _own_codes(column: pa.ChunkedArray) -> tuple[Int64, int, pa.Array] | None:
    """The values, the lowest of them, and all integers from the lowest to the highest. None if the
    values are not integers, or too sparse to be their own codes (`SPREAD_MAX`)."""
    if not pa.types.is_integer(column.type) or column.null_count or not len(column):
        return None
    value = whole(column).to_numpy()
    low, high = int(value.min()), int(value.max())
    if high - low >= SPREAD_MAX * len(column) + 1024 or high >= 2**62:
        return None
    return (
        value.astype(np.int64, copy=False),
        low,
        pa.array(np.arange(low, high + 1)).cast(column.type),
    )
