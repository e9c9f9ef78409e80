"""Expressions over the rows of each firing, by table."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tidegate.engine.core.evaluator import firings
from tidegate.engine.core.evaluator.firings import (
    FiringExpression,
    FiringReader,
    compile_condition,
    compile_fields,
)
from tidegate.engine.core.evaluator.forms import read_tree
from tidegate.engine.core.evaluator.nodes import RaisingError, UndecidedError

D = Decimal
RELATION = pa.table(
    {
        "firing_id": ["y", "y", "x", "y", "z"],
        "k": [7, 7, 8, 7, 9],
        "i": pa.array([5, None, -7, 2, None], pa.int32()),
        "big": [2**62, 2**62, 1, -1, None],
        "d": pa.array([D("1.50"), D("0.01"), D("2.00"), None, None], pa.decimal128(12, 2)),
        "f": [0.1, 0.2, math.nan, 0.3, None],
        "s": ["b", "a", "é", None, None],
        "b": [True, False, None, True, None],
        "old": pa.array([{"i": 1}, None, {"i": 3}, {"i": 4}, None], pa.struct([("i", pa.int32())])),
    }
)
KINDS = {field.name: field.type for field in RELATION.schema} | {"old.i": pa.int32()}


@pytest.mark.parametrize(
    ("text", "kind", "want"),  # of the firings y, x, z
    [
        ("count(*)", pa.int64(), [3, 1, 1]),
        ("count(1)", pa.int64(), [3, 1, 1]),
        ("count(i)", pa.int64(), [2, 1, 0]),
        ("count_if(b)", pa.int64(), [2, 0, 0]),
        ("count_if(i > 2 or f > 0.1)", pa.int64(), [3, 1, 0]),
        ("sum(i)", pa.int64(), [7, -7, None]),
        ("sum(d)", pa.decimal128(22, 2), [D("1.51"), D("2.00"), None]),
        ("sum(f)", pa.float64(), [0.1 + 0.2 + 0.3, math.nan, None]),
        ("sum(d * 2)", pa.decimal128(24, 2), [D("3.02"), D("4.00"), None]),
        ("avg(i)", pa.float64(), [3.5, -7.0, None]),
        ("avg(d)", pa.decimal128(16, 6), [D("0.755000"), D("2.000000"), None]),
        ("avg(f)", pa.float64(), [(0.1 + 0.2 + 0.3) / 3, math.nan, None]),
        ("min(i)", pa.int32(), [2, -7, None]),
        ("max(s)", pa.string(), ["b", "é", None]),
        ("min(s)", pa.string(), ["a", "é", None]),
        ("max(f)", pa.float64(), [0.3, math.nan, None]),
        ("min(b)", pa.bool_(), [False, None, None]),
        ("max(old.i)", pa.int32(), [4, 3, None]),
        ("max(i) - min(i)", pa.int32(), [3, 0, None]),
        ("sum(i) / count(*)", pa.float64(), [7 / 3, -7.0, None]),
        ("sum(i) + k", pa.int64(), [14, 1, None]),
        ("if(count(i) > 0, 1 / count(i), 0)", pa.float64(), [0.5, 1.0, 0.0]),
        ("k", pa.int64(), [7, 8, 9]),
        ("firing_id = 'x' or k > 8", pa.bool_(), [False, True, True]),
    ],
)
def test_aggregates(text: str, kind: pa.DataType, want: list[Any]) -> None:
    reader = FiringReader(KINDS, ("firing_id", "k"))
    node = reader.node(read_tree(text))
    ids, found = FiringExpression(node, reader.aggregates).values(RELATION)
    assert ids.to_pylist() == ["y", "x", "z"]
    assert found.type == kind
    assert list(map(repr, found.to_pylist())) == list(map(repr, want))


def test_a_half_of_an_average_is_rounded_away_from_zero() -> None:
    digits = [D("0.1"), D("-0.1"), *([D("0.0")] * 62)]
    table = pa.table({"firing_id": ["a", "b"] * 32, "d": pa.array(digits, pa.decimal128(3, 1))})
    reader = FiringReader({"firing_id": pa.string(), "d": pa.decimal128(3, 1)}, ["firing_id"])
    node = reader.node(read_tree("avg(d)"))
    _, found = FiringExpression(node, reader.aggregates).values(table)
    assert found.to_pylist() == [D("0.00313"), D("-0.00313")]  # of 0.003125


def test_of_equal_extremes_the_first_is_taken() -> None:
    values = pa.array([-0.0, 0.0, 0.0, -0.0, math.nan])
    table = pa.table({"firing_id": ["a", "a", "b", "b", "c"], "f": values})
    for text in ("max(f)", "min(f)"):
        reader = FiringReader({"firing_id": pa.string(), "f": pa.float64()}, ["firing_id"])
        _, found = FiringExpression(reader.node(read_tree(text)), reader.aggregates).values(table)
        assert list(map(repr, found.to_pylist())) == ["-0.0", "0.0", "nan"]


def test_a_condition_names_the_firings_of_which_it_is_true() -> None:
    condition = compile_condition("sum(i) > 0 or max(f) > 1", RELATION.schema, ())
    assert condition is not None
    assert condition.held(RELATION) == {"y", "x"}
    assert condition.held(RELATION.slice(4)) == set()


def test_a_relation_that_no_array_holds_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    condition = compile_condition("count(*) > 0", RELATION.schema, ())
    assert condition is not None
    monkeypatch.setattr(firings, "JOINED_BYTES_MAX", 1)
    with pytest.raises(UndecidedError):
        condition.held(RELATION)


@pytest.mark.parametrize(
    "text",
    [
        "i > 1",  # Spark refuses a column without an aggregate
        "sum(distinct i) > 1",
        "count(distinct i) > 1",
        "count(i, k) > 1",
        "sum(i) filter (where b) > 1",
        "sum(sum(i)) > 1",
        "sum(s) > 1",
        "count_if(i) > 1",
        "min(old) is null",
        "first(i) > 1",
        "stddev(i) > 1",
        "avg(cast(d as decimal(19,2))) > 1",
        "sum(cast(d as decimal(38,2))) > 1",
        "sum(i) over () > 1",
        "count(*)",
        "sum(1) > 1",
        "k > 1",
    ],
)
def test_everything_else_is_for_spark(text: str) -> None:
    assert compile_condition(text, RELATION.schema, ()) is None


@pytest.mark.parametrize("text", ["sum(big) > 0", "1 / count(i) > 0", "sum(i + 2147483647) > 0"])
def test_rows_on_which_spark_may_raise_are_not_decided(text: str) -> None:
    condition = compile_condition(text, RELATION.schema, ())
    assert condition is not None
    with pytest.raises(UndecidedError):
        condition.held(RELATION)


def test_fields_are_cast_and_keep_their_order() -> None:
    fields = {"total": "sum(d)", "one": "1", "k": "k", "word": "'it'", "none": "null"}
    casts = {"total": "decimal(12,1)", "one": "decimal(5,2)", "k": "int"}
    found = compile_fields(fields, casts, RELATION.schema, ["k"])
    assert found is not None
    said = found.values(RELATION)
    kinds = [pa.string(), pa.decimal128(12, 1), pa.decimal128(5, 2), pa.int32(), pa.string()]
    assert said.schema.names == ["firing_id", *fields]
    assert said.schema.types == [*kinds, pa.null()]
    assert said.to_pylist()[:2] == [
        {"firing_id": "y", "total": D("1.5"), "one": D("1.00"), "k": 7, "word": "it", "none": None},
        {"firing_id": "x", "total": D("2.0"), "one": D("1.00"), "k": 8, "word": "it", "none": None},
    ]


def test_no_fields_are_a_row_a_firing() -> None:
    found = compile_fields({}, {}, RELATION.schema, [])
    assert found is not None
    assert found.values(RELATION).to_pylist() == [{"firing_id": one} for one in "yxz"]


def test_a_key_of_minus_zero_is_shown_as_zero() -> None:
    """Spark groups both under 0.0."""
    table = pa.table({"firing_id": ["a"], "f": [-0.0]})
    found = compile_fields({"f": "f", "g": "max(f)"}, {}, table.schema, ["f"])
    assert found is not None
    assert repr(found.values(table).to_pylist()) == "[{'firing_id': 'a', 'f': 0.0, 'g': -0.0}]"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("i", "int"),
        ("sum(d)", "string"),
        ("sum(f)", "decimal(12,2)"),
        ("k", "date"),
        ("300", "tinyint"),
        ("concat('a', 'b')", None),
        ("count(*)", "nonsense"),
    ],
)
def test_other_fields_are_for_spark(text: str, kind: str | None) -> None:
    casts = {} if kind is None else {"x": kind}
    assert compile_fields({"ok": "k", "x": text}, casts, RELATION.schema, ("k",)) is None


@pytest.mark.parametrize(
    ("text", "kind"), [("sum(i) - 200", "tinyint"), ("max(d)", "decimal(1,1)")]
)
def test_fields_that_do_not_fit_are_not_decided(text: str, kind: str) -> None:
    found = compile_fields({"x": text}, {"x": kind}, RELATION.schema, ())
    assert found is not None
    with pytest.raises(RaisingError):
        found.values(RELATION)
