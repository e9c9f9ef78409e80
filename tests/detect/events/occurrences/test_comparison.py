"""Values of different Arrow types as keys (`language.md` 4)."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tidegate.engine.detect.events.occurrences.comparison import KeyTypeError
from tidegate.engine.detect.events.occurrences.keys import encode

NAN = float("nan")
BIG = 2**53


def codes(*parts: pa.Array) -> tuple[list[list[int]], list[Any]]:
    """The codes of the parts' values as one key column, and what they stand for."""
    found, keys = encode([[pa.chunked_array([part])] for part in parts])
    values = keys.columns[0].to_pylist()
    return [part.tolist() for part in found], values


@pytest.mark.parametrize(
    ("parts", "groups"),
    [
        ([pa.array([7, 8]), pa.array([7.0, 8.5])], [[0, 1], [0, 2]]),
        ([pa.array([7]), pa.array([Decimal("7.00"), Decimal("7.01")])], [[0], [0, 1]]),
        ([pa.array([0.5]), pa.array([Decimal("0.50")])], [[0], [0]]),
        ([pa.array([0.1]), pa.array([Decimal("0.10")])], [[0], [1]]),
        ([pa.array([Decimal("7.0")]), pa.array([Decimal("7.00")])], [[0], [0]]),
        ([pa.array([-0.0, 0.0, NAN]), pa.array([0])], [[0, 0, 1], [0]]),
        ([pa.array([NAN, -NAN]), pa.array([NAN], pa.float32())], [[0, 0], [0]]),
        ([pa.array([BIG, BIG + 1]), pa.array([float(BIG)])], [[0, 1], [0]]),
        ([pa.array([BIG + 1]), pa.array([0.5, float(BIG)])], [[0], [1, 2]]),
        ([pa.array([2**60, 8]), pa.array([0.5, 2.0**60])], [[0, 1], [2, 0]]),
        ([pa.array([2**63 - 1]), pa.array([2.0**63])], [[0], [1]]),
        ([pa.array([2**63], pa.uint64()), pa.array([-1])], [[0], [1]]),
        ([pa.array([BIG + 1]), pa.array([Decimal("0.5")]), pa.array([0.5])], [[0], [1], [1]]),
        ([pa.array(["7", "8"]), pa.array(["8"], pa.large_string())], [[0, 1], [1]]),
        ([pa.array(["7"]).dictionary_encode(), pa.array(["7"])], [[0], [0]]),
        ([pa.array([None, 7]), pa.array([None, 7.0]), pa.nulls(1)], [[0, 1], [0, 1], [0]]),
        ([pa.array([date(2026, 1, 1)]), pa.array([datetime(2026, 1, 1)])], [[0], [0]]),
    ],
)
def test_equal_values_are_one_key(parts: list[pa.Array], groups: list[list[int]]) -> None:
    found, values = codes(*parts)
    number: dict[int, int] = {}
    for part in found:
        for code in part:
            number.setdefault(code, len(number))
    assert [[number[code] for code in part] for part in found] == groups
    for part, coded in zip(parts, found, strict=True):
        for value, code in zip(part.to_pylist(), coded, strict=True):
            assert _same(values[code - 1], value)


def _same(kept: Any, value: Any) -> bool:
    """Whether a key has the very value that it stands for."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return bool(kept == value or (kept != kept and value != value))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([pa.array([7]), pa.array(["7"])], "int64 and string are never equal"),
        ([pa.array([True]), pa.array([1])], "bool and int64 are never equal"),
        ([pa.array([[7]])], "list<item: int64> is no type of a key"),
        ([pa.array([{"x": 7}])], "struct<x: int64> is no type of a key"),
        ([pa.array([BIG + 1]), pa.array([1e300])], "have no type in common"),
        ([pa.array([BIG + 1]), pa.array([NAN])], "nan has no type in common"),
    ],
)
def test_what_does_not_compare_is_said(parts: list[pa.Array], said: str) -> None:
    with pytest.raises(KeyTypeError, match=said):
        codes(*parts)
