"""The order of simultaneous occurrences by their parameters (S1)."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.examples import example_count
from tidegate.engine.detect.events.occurrences import order
from tidegate.engine.replay import json_values

VALUES = {
    pa.int64(): st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1]),
    pa.int16(): st.integers(-1, 1),
    pa.uint64(): st.sampled_from([0, 1, 2**64 - 1]),
    pa.float64(): st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 1e-300, 2.0, math.inf, math.nan]),
    pa.float32(): st.sampled_from([-1.0, 0.5, math.nan]),
    pa.bool_(): st.booleans(),
    pa.string(): st.sampled_from(["", "a", "B", "é"]),
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from(["a", "b"]),
    pa.decimal128(5, 2): st.sampled_from([Decimal("-1.50"), Decimal("0.00"), Decimal("2.25")]),
    pa.timestamp("us", "UTC"): st.sampled_from(
        [datetime(y, 1, 1, tzinfo=UTC) for y in (1969, 2001)]
    ),
    pa.struct([("y", pa.int64()), ("x", pa.string())]): st.fixed_dictionaries(
        {"x": st.sampled_from(["a", "b", None]), "y": st.sampled_from([1, 2, None])}
    ),
    pa.list_(pa.int64()): st.lists(st.integers(0, 2), max_size=2),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(1, 8))
    columns = {}
    for name in draw(st.permutations(["a", "b", "c"])):
        kind = draw(st.sampled_from([*VALUES]))
        values = st.lists(st.none() | VALUES[kind], min_size=count, max_size=count)
        columns[name] = pa.array(draw(values), kind)
    return pa.table(columns)


@given(table=tables(), data=st.data())
@example_count(300)
def test_s01_the_greatest_is_the_last_of_those_with_the_highest_rank(
    table: pa.Table, data: st.DataObject
) -> None:
    row = np.array(data.draw(st.permutations(range(len(table)))))
    groups = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(row), max_size=len(row))))
    rank = order.refine(groups, table.take(pa.array(row)))
    expected = {max(np.flatnonzero(groups == g), key=lambda i: (rank[i], i)) for g in {*groups}}
    assert {*order.greatest(groups, table, row)} == expected


def test_s01_lines_are_chosen_in_the_same_order() -> None:
    lines = ['{"a": 1, "b": "x"}', '{"a": 1.0, "b": "y"}', '{"a": true, "b": "z"}', '{"a": 1}']
    table = pa.table({json_values.LINE: lines})
    groups = np.array([5, 5, 5, 7])
    assert sorted(json_values.greatest(groups, table, np.array([2, 1, 0, 3]))) == [1, 3]


def test_s01_the_parameters_of_what_is_alone_at_its_instant_are_not_looked_at() -> None:
    nothing = pa.table({"a": pa.array([object()] * 0, pa.int64())})
    assert [*order.greatest(np.array([2, 0]), nothing, np.array([9, 9]))] == [1, 0]
