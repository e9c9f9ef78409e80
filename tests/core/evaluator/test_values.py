"""What each form gives: Spark's type, and Spark's values, over the same few rows."""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tidegate.engine.core.evaluator.forms import Reader, read_tree
from tidegate.engine.core.evaluator.nodes import Rows, UndecidedError

D = Decimal
NAN = math.nan
COLUMNS = {
    "tiny": pa.array([5, None, -7], pa.int8()),
    "i": pa.array([5, None, -7], pa.int32()),
    "big": pa.array([2**53 + 1, None, -1], pa.int64()),
    "d": pa.array([D("1.50"), None, D("-2.25")], pa.decimal128(12, 2)),
    "e": pa.array([D("0.125"), D("1.000"), None], pa.decimal128(5, 3)),
    "n": pa.array([D("9.95"), None, D("-9.95")], pa.decimal128(3, 2)),
    "f": pa.array([1.5, NAN, -0.0]),
    "g": pa.array([NAN, NAN, 0.0]),
    "r": pa.array([0.5, None, -2.0], pa.float32()),
    "s": pa.array([" a ", None, "a%\nb"]),
    "u": pa.array(["é", "\U0001f600", "z"]),
    "b": pa.array([True, None, False]),
    "c": pa.array([None, None, False]),
    "t": pa.array([date(2024, 2, 29), None, date(1970, 1, 1)]),
}
TYPES = {name: column.type for name, column in COLUMNS.items()}
BOOL, INT, LONG, DOUBLE, TEXT = pa.bool_(), pa.int32(), pa.int64(), pa.float64(), pa.string()


def values(text: str) -> pa.Array:
    node = Reader(TYPES).node(read_tree(text))
    found = node.run(Rows(COLUMNS, 3))
    assert found.type == node.kind
    return found


@pytest.mark.parametrize(
    ("text", "kind", "want"),
    [
        # casts: a half is rounded away from zero, a fraction cut off, a double the nearest
        ("cast(e as decimal(5,2))", pa.decimal128(5, 2), [D("0.13"), D("1.00"), None]),
        ("cast(n as decimal(3,1))", pa.decimal128(3, 1), [D("10.0"), None, D("-10.0")]),
        ("cast(n as int)", INT, [9, None, -9]),
        ("cast(cast(big as decimal(18,1)) as double)", DOUBLE, [float(2**53), None, -1.0]),
        # arithmetic of integers: the wider type; `/` gives doubles; `%` has the dividend's sign
        ("tiny + tiny", pa.int8(), [10, None, -14]),
        ("tiny + 1", INT, [6, None, -6]),
        ("i * big - big", LONG, [4 * (2**53 + 1), None, 8]),
        ("i / 2", DOUBLE, [2.5, None, -3.5]),
        ("i % 3", INT, [2, None, -1]),
        ("-7 % i", INT, [-2, None, 0]),
        ("i % 3000000000", LONG, [5, None, -7]),
        ("-i", INT, [-5, None, 7]),
        ("abs(tiny)", pa.int8(), [5, None, 7]),
        ("i - -1", INT, [6, None, -6]),
        # decimals: precision and scale of results
        ("d + e", pa.decimal128(14, 3), [D("1.625"), None, None]),
        ("d - 1", pa.decimal128(13, 2), [D("0.50"), None, D("-3.25")]),
        ("d * e", pa.decimal128(18, 5), [D("0.18750"), None, None]),
        ("d * 1.50", pa.decimal128(16, 4), [D("2.2500"), None, D("-3.3750")]),
        ("d + i", pa.decimal128(13, 2), [D("6.50"), None, D("-9.25")]),
        ("d / e", pa.decimal128(21, 8), [D("12.00000000"), None, None]),
        ("d / 7", pa.decimal128(16, 6), [D("0.214286"), None, D("-0.321429")]),
        ("1 / d", pa.decimal128(16, 13), [D("0.6666666666667"), None, D("-0.4444444444444")]),
        ("d / i", pa.decimal128(23, 13), [D("0.3000000000000"), None, D("0.3214285714286")]),
        ("d % 1", pa.decimal128(3, 2), [D("0.50"), None, D("-0.25")]),
        ("abs(d)", pa.decimal128(12, 2), [D("1.50"), None, D("2.25")]),
        ("-d", pa.decimal128(12, 2), [D("-1.50"), None, D("2.25")]),
        # doubles and floats
        ("f * 2", DOUBLE, [3.0, NAN, -0.0]),
        ("d * 1e0", DOUBLE, [1.5, None, -2.25]),
        ("r + r", pa.float32(), [1.0, None, -4.0]),
        ("r / r", DOUBLE, [1.0, None, 1.0]),
        ("f % 1", DOUBLE, [0.5, NAN, -0.0]),
        # comparisons: NaN equals NaN and is the greatest, -0.0 equals 0.0
        ("f = g", BOOL, [False, True, True]),
        ("f <> g", BOOL, [True, False, False]),
        ("f < g", BOOL, [True, False, False]),
        ("f <= g", BOOL, [True, True, True]),
        ("f >= g", BOOL, [False, True, True]),
        ("g > 1e300", BOOL, [True, True, False]),
        ("f in (0.0, 1.5)", BOOL, [True, False, True]),
        ("big = 9007199254740992e0", BOOL, [True, None, False]),
        ("big = 9007199254740993", BOOL, [True, None, False]),
        ("big = 9007199254740992", BOOL, [False, None, False]),
        ("d > e", BOOL, [True, None, None]),
        ("i > d", BOOL, [True, None, False]),
        ("i in (5, 5.5, -7)", BOOL, [True, None, True]),
        ("u > 'z'", BOOL, [True, True, False]),  # by bytes
        ("b > false", BOOL, [True, None, False]),
        ("t between DATE '2024-01-01' and DATE '2024-12-31'", BOOL, [True, None, False]),
        ("i not in (1, 2)", BOOL, [True, None, True]),
        # logic of three values
        ("b and c", BOOL, [None, None, False]),
        ("b or c", BOOL, [True, None, False]),
        ("not c", BOOL, [None, None, True]),
        ("c is null", BOOL, [True, True, False]),
        ("(b and c) is not null", BOOL, [False, False, True]),
        # branches
        ("case when b then i else 0 end", INT, [5, 0, 0]),
        ("case when b then i when c is null then big end", LONG, [5, None, None]),
        ("case i when 5 then 'five' end", TEXT, ["five", None, None]),
        ("if(c, 1, 2.5)", pa.decimal128(11, 1), [D("2.5")] * 3),
        ("if(b, null, s)", TEXT, [None, None, "a%\nb"]),
        ("coalesce(d, i, 0)", pa.decimal128(12, 2), [D("1.50"), D("0.00"), D("-2.25")]),
        ("coalesce(c, b, true)", BOOL, [True, True, False]),
        # casts
        ("cast(i as bigint)", LONG, [5, None, -7]),
        ("cast(big as double)", DOUBLE, [2.0**53, None, -1.0]),
        ("cast(i as decimal(12,2))", pa.decimal128(12, 2), [D("5.00"), None, D("-7.00")]),
        ("cast(d as double)", DOUBLE, [1.5, None, -2.25]),
        ("cast(r as double)", DOUBLE, [0.5, None, -2.0]),
        ("cast(i as string)", TEXT, ["5", None, "-7"]),
        ("cast(b as string)", TEXT, ["true", None, "false"]),
        ("cast(b as int)", INT, [1, None, 0]),
        ("cast(d as decimal(3,1))", pa.decimal128(3, 1), [D("1.5"), None, D("-2.3")]),
        ("cast(d as int)", INT, [1, None, -2]),
        ("cast(i as tinyint)", pa.int8(), [5, None, -7]),
        ("cast(i as decimal(1,0))", pa.decimal128(1, 0), [D(5), None, D(-7)]),
        ("cast(f as float)", pa.float32(), [1.5, NAN, -0.0]),
        # strings
        ("s like '%a%'", BOOL, [True, None, True]),
        ("s like 'a%b'", BOOL, [False, None, True]),
        ("s not like ' _ '", BOOL, [False, None, True]),
        ("u like '_'", BOOL, [True, True, True]),
        ("length(u)", INT, [1, 1, 1]),
        ("length(trim(s))", INT, [1, None, 4]),
        ("upper(s)", TEXT, [" A ", None, "A%\nB"]),
        ("lower(upper(s))", TEXT, [" a ", None, "a%\nb"]),
        ("trim(u)", TEXT, ["é", "\U0001f600", "z"]),
    ],
)
def test_values_and_types_are_sparks(text: str, kind: pa.DataType, want: list[Any]) -> None:
    found = values(text)
    assert found.type == kind
    assert list(map(repr, found.to_pylist())) == list(map(repr, want))


def test_letters_beyond_ascii_are_left_to_spark() -> None:
    for text in ("upper(u)", "lower(u)"):
        with pytest.raises(UndecidedError):
            values(text)


@pytest.mark.parametrize("digits", ["9007199254740.993", "123456789012345.678", "0.001"])
def test_a_decimal_becomes_the_nearest_double(digits: str) -> None:
    column = pa.array([D(digits)], pa.decimal128(25, 3))
    node = Reader({"d": column.type}).node(read_tree("cast(d as double)"))
    assert node.run(Rows({"d": column}, 1)).to_pylist() == [float(digits)]
