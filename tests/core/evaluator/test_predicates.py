"""The `where` of a rule on Arrow columns: exact numbers, nulls, NaN, small numbers as fast ones."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.engine.core.evaluator.predicates import decision, is_small
from tidegate.rules.expressions.predicate_parser import PredicateError, parse_predicate

LEAST, MOST = -(2**63), 2**63 - 1
NAN = float("nan")
DECIMAL = pa.decimal128(12, 2)


def true(text: str, *, small: bool = False, **columns: pa.Array) -> list[bool]:
    """`a=array` is the column a.v."""
    named = {f"{name}.v": values for name, values in columns.items()}
    types = tuple((name, values.type) for name, values in named.items())
    count = len(next(iter(named.values())))
    return decision(parse_predicate(text), types, small=small).true(named, count).tolist()


CASES: list[tuple[str, dict[str, Any], list[bool]]] = [
    ("a.v * b.v > 0", {"a": pa.array([LEAST, 5, None]), "b": pa.array([LEAST, 4, 3])}, [1, 1, 0]),
    ("a.v * b.v < 0", {"a": pa.array([MOST]), "b": pa.array([LEAST])}, [1]),
    ("a.v + b.v > 1", {"a": pa.array([MOST, 1]), "b": pa.array([MOST, 0])}, [1, 0]),
    ("-a.v > 0", {"a": pa.array([LEAST])}, [1]),
    ("a.v > 3.5", {"a": pa.array([4, 3])}, [1, 0]),
    ("a.v > 9223372036854775807", {"a": pa.array([MOST])}, [0]),
    ("a.v < 9223372036854775808", {"a": pa.array([MOST])}, [1]),
    ("abs(a.v) >= 5", {"a": pa.array([-5, 4])}, [1, 0]),
    (
        "a.v = 1.1 * b.v",
        {"a": pa.array([Decimal("1.10"), Decimal("2.21")], DECIMAL), "b": pa.array([1, 2])},
        [1, 0],
    ),
    ("a.v = b.v", {"a": pa.array([NAN, NAN, 0.0]), "b": pa.array([NAN, 1.0, -0.0])}, [1, 0, 1]),
    ("a.v > b.v", {"a": pa.array([NAN, 1.5]), "b": pa.array([1.0, NAN])}, [1, 0]),
    ("a.v > b.v", {"a": pa.array([1.5], pa.float32()), "b": pa.array([1])}, [1]),
    ("a.v > 2.5 * 2", {"a": pa.array([5.0, 5.5])}, [0, 1]),
    (
        "a.v > abs(1 - 2.5) * 2 + b.v",
        {"a": pa.array([4.0, 4.5]), "b": pa.array([1.0, 1.0])},
        [0, 1],
    ),
    ("a.v < -(0.1 + 0.2) * 10", {"a": pa.array([-3, -4])}, [0, 1]),
    ("a.v = 'x' or a.v is null", {"a": pa.array(["x", None, "y"])}, [1, 1, 0]),
    ("a.v < 3", {"a": pa.nulls(2)}, [0, 0]),
    ("not (a.v < 3) or a.v is null", {"a": pa.nulls(2)}, [1, 1]),
    ("a.v + 1 < 3 or b.v = 2", {"a": pa.nulls(2), "b": pa.array([2, 3])}, [1, 0]),
    ("a.v is not null and 1 < 2", {"a": pa.array([None, 1])}, [0, 1]),
]


@pytest.mark.parametrize(("text", "columns", "expected"), CASES)
def test_what_is_true(text: str, columns: dict[str, Any], expected: list[bool]) -> None:
    assert true(text, **columns) == [bool(each) for each in expected]


VALUES = st.lists(st.integers(-(10**9), 10**9) | st.none(), min_size=2, max_size=2)
NUMBERS = ["a.v + b.v * 3", "abs(a.v - b.v)", "-(a.v * b.v)", "a.v - 7"]


@given(VALUES, VALUES, st.sampled_from(NUMBERS), st.sampled_from(["<", "=", ">="]))
def test_small_numbers_are_decided_as_exact_ones(
    a: list[int | None], b: list[int | None], left: str, sign: str
) -> None:
    columns = {"a": pa.array(a, pa.int64()), "b": pa.array(b, pa.int64())}
    text = f"{left} {sign} a.v"
    named = {f"{name}.v": values for name, values in columns.items()}
    assert is_small(parse_predicate(text), named)
    assert true(text, small=True, **columns) == true(text, **columns)


@pytest.mark.parametrize(
    ("text", "small"),
    [("a.v + 1 > 0", False), ("a.v - 1 > 0", True), ("2 * a.v > 0", False), ("-a.v > 0", True)],
)
def test_results_beyond_64_bits_are_not_small(text: str, small: bool) -> None:
    assert is_small(parse_predicate(text), {"a.v": pa.array([1, MOST])}) is small


def test_a_condition_of_very_many_words_is_refused() -> None:
    with pytest.raises(PredicateError, match="more than 500 words and signs"):
        parse_predicate(" + ".join(["a.v"] * 2_000) + " > 1")
