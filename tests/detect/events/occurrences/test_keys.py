"""Keys that are seen to be known already."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tidegate.engine.detect.events.occurrences.keys import encode

INTEGERS = [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.int64(), pa.uint64()]


def column(values: list[object], kind: pa.DataType) -> list[pa.ChunkedArray]:
    return [pa.chunked_array([pa.array(values, kind)])]


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_integers_that_are_their_own_codes_are_known_at_a_glance(kind: pa.DataType) -> None:
    _, keys = encode([column([0, 100], kind)])
    (codes,) = keys.known_codes([column([100, 0, 50], kind)]) or ()
    assert codes.tolist() == [101, 1, 51]
    (shown,) = keys.values(np.array([0, 1, 51, 101, 102], np.int32))
    assert shown.to_pylist() == [None, 0, 50, 100, None]
    assert shown.type == kind


@pytest.mark.parametrize(
    "others",
    [
        column([101], pa.int64()),
        column([-1], pa.int64()),
        column([None], pa.int64()),
        column([7], pa.int32()),
        column([7.0], pa.float64()),
    ],
    ids=["above", "below", "null", "another type", "real"],
)
def test_other_values_are_encoded_with_those_that_are_known(others: list[pa.ChunkedArray]) -> None:
    _, keys = encode([column([0, 100], pa.int64())])
    assert keys.known_codes([others]) is None


def test_keys_of_texts_and_of_two_columns_are_not_known_at_a_glance() -> None:
    _, texts = encode([column(["x"], pa.string())])
    assert texts.known_codes([column(["x"], pa.string())]) is None
    pair = column([7], pa.int64()) * 2
    _, pairs = encode([pair])
    assert pairs.known_codes([pair]) is None
