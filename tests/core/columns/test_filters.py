"""Filters on Arrow: what is in the closed list, and that it means what Spark means."""

from __future__ import annotations

import math
import random
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tidegate.engine.core.columns.filters import compile_filter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "i": pa.int32(),
    "j": pa.int32(),
    "big": pa.int64(),
    "tiny": pa.int8(),
    "d": pa.decimal128(12, 2),
    "e": pa.decimal128(12, 2),
    "f": pa.float64(),
    "s": pa.string(),
    "Mixed": pa.string(),
    "b": pa.bool_(),
    "t": pa.date32(),
    "z": pa.timestamp("us", "UTC"),
    "r": pa.float32(),
}


@pytest.mark.parametrize(
    "text",
    [
        "i = 1",
        "i == -1 and not (s = 'x' OR b)",
        "5 < big",
        "d >= 1.5",
        "d < e",
        "f > 1e3 or f <= 1.25 or f = 2",
        "s in ('a', 'it is') and s not in ('b')",
        "i between 1 and 5 and i not between 2 and 3",
        "z is null or r is not null",
        "t >= DATE '2024-02-29'",
        "`mixed` <> '' and MIXED != 'x'",
        "not b and b = true",
        "tiny > 1000",
        " or ".join(f"i = {n}" for n in range(2_000)),
    ],
)
def test_forms_of_the_list(text: str) -> None:
    assert compile_filter(text, TYPES) is not None


@pytest.mark.parametrize(
    "text",
    [
        "i = 1.5",  # Spark casts both
        "i = '1'",
        "s = 1",
        "i = big",
        "r = 1.5",
        "f = f",  # NaN
        "d = 1.555",
        "d = 123456789012345678901234567890123456789",
        "i = 9223372036854775808",
        "z > '2024-01-01'",
        "t = DATE '2023-02-29'",
        "t = '2024-01-01'",
        "s like 'a%'",
        "length(s) = 1",
        "i + 1 = 2",
        "i <=> 1",
        "i in (1, null)",
        "i = null",
        "s = 'it''s'",
        "s = 'a' 'b'",
        r"s = 'a\nb'",
        's = "a"',
        "i = 1 -- really",
        "i = 1)",
        "i =",
        "",
        "new.i = 1",  # there is no pre-image
        "missing = 1",
        "s.x = 'a'",
        "case when b then true end",
        "f = 1e999",
        "i not null",  # no Spark SQL
        "i not is null",
        "i between 1 2",
        "i is not unknown",
        "`old.i` = 1",
    ],
)
def test_everything_else_is_for_spark(text: str) -> None:
    assert compile_filter(text, TYPES) is None


def test_equal_filters_have_equal_texts() -> None:
    first, second = (
        compile_filter("I=1 AND s='a'", TYPES),
        compile_filter("i == 1 and S = 'a'", TYPES),
    )
    assert first
    assert second
    assert first.text == second.text
    assert first.columns == {"i", "s"}


def test_new_is_the_row_itself() -> None:
    types = {"i": pa.int32(), "old.i": pa.int32()}
    found = compile_filter("new.i > Old . I and i < 9", types)
    assert found
    assert found.columns == {"i", "old.i"}
    columns = {"i": pa.chunked_array([[1, 5, 9]]), "old.i": pa.chunked_array([[2, 2, 2]])}
    assert found.run(columns).tolist() == [False, True, False]


# -- fuzzed against Spark -----------------------------------------------------------------------

INTS = [None, 0, 1, -1, 5, 127, 2**31 - 1, -(2**31)]
VALUES: dict[str, list] = {
    "i": INTS,
    "j": INTS,
    "big": [None, 0, 1, -(2**63), 2**63 - 1, 2**53 + 1],
    "d": [None, Decimal("0.00"), Decimal("1.50"), Decimal("-1.50"), Decimal("9999999999.99")],
    "e": [None, Decimal("0.00"), Decimal("1.50"), Decimal("2.00")],
    "f": [None, 0.0, -0.0, 1.5, 0.1, -2.0, math.nan, math.inf, -math.inf, 1e300],
    "s": [None, "", "a", "A", "b", "aa", "é", "z\U0001f600"],
    "b": [None, True, False],
    "t": [None, date(2024, 2, 29), date(1970, 1, 1), date(1, 1, 1)],
}
LITERALS: dict[str, list[str]] = {
    "i": ["0", "1", "-1", "5", "127", "2147483648", "-9000000000"],
    "big": ["0", "1", "9223372036854775807", "-1", "9007199254740993"],
    "d": ["0", "1.5", "1.50", "-1.5", "2", "9999999999.99", "99999999999999"],
    "f": ["0", "1.5", "-2", "1e300", "0.1", "1E-1", "9007199254740993"],
    "s": ["''", "'a'", "'A'", "'é'", "'zz'"],
    "t": ["DATE '2024-02-29'", "DATE'1970-01-01'"],
}
OPERATORS = ["=", "==", "<>", "!=", "<", "<=", ">", ">="]


def predicate(rng: random.Random, depth: int = 3) -> str:
    if depth and rng.random() < 0.6:
        parts = [predicate(rng, depth - 1) for _ in range(rng.randint(1, 3))]
        text = rng.choice([" AND ", " or "]).join(parts)
        return f"not ({text})" if rng.random() < 0.4 else f"({text})"
    column = rng.choice(sorted(LITERALS))
    literal = rng.choice(LITERALS[column])
    return rng.choice(
        [
            f"{column} {rng.choice(OPERATORS)} {literal}",
            f"{literal} {rng.choice(OPERATORS)} {column}",
            f"{column} {rng.choice(['', 'NOT '])}IN ({literal}, {rng.choice(LITERALS[column])})",
            f"{column} {rng.choice(['', 'not '])}BETWEEN {literal} AND "
            f"{rng.choice(LITERALS[column])}",
            f"{column} is {rng.choice(['', 'NOT '])}null",
            rng.choice(["b", "NOT b", "b = TRUE", "b <> false"]),
            f"i {rng.choice(OPERATORS)} j",
            f"d {rng.choice(OPERATORS)} e",
        ]
    )


def test_g30_filters_agree_with_spark(spark: SparkSession) -> None:
    rng = random.Random(30)
    types = {name: kind for name, kind in TYPES.items() if name in VALUES}
    table = pa.table(
        {n: pa.array([rng.choice(v) for _ in range(300)], types[n]) for n, v in VALUES.items()}
    )
    texts = sorted({predicate(rng) for _ in range(60)})
    frame = spark.createDataFrame(table).selectExpr(
        *(f"coalesce({text}, false) AS `{at}`" for at, text in enumerate(texts))
    )
    said = frame.toArrow()
    columns = {name: table.column(name) for name in table.column_names}
    for at, text in enumerate(texts):
        found = compile_filter(text, types)
        assert found is not None, text
        assert found.run(columns).tolist() == said.column(str(at)).to_pylist(), text
