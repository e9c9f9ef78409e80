"""Draws Spark SQL expressions of a wanted type, and rows for them.

Most expressions are inside the list of forms; some are not: a cast that may fail, a function that
the list does not have, a mixture of types.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

ROWS, TEXTS = 50, 40  # in one question to Spark
TYPES = {
    "tiny": pa.int8(),
    "small": pa.int16(),
    "i": pa.int32(),
    "j": pa.int32(),
    "big": pa.int64(),
    "d": pa.decimal128(12, 2),
    "e": pa.decimal128(5, 3),
    "wide": pa.decimal128(20, 4),
    "vast": pa.decimal128(36, 6),
    "f": pa.float64(),
    "g": pa.float64(),
    "r": pa.float32(),
    "s": pa.string(),
    "u": pa.string(),
    "b": pa.bool_(),
    "c": pa.bool_(),
    "t": pa.date32(),
    "z": pa.timestamp("us", "UTC"),
    "n": pa.timestamp("us"),
}
_USUAL = 0.85  # of the values of a column; the others are at the edge of its type
_VALUES: dict[str, tuple[list, list]] = {
    "tiny": ([None, 0, 1, -1, 5, 7], [127, -128]),
    "small": ([None, 0, 1, -1, 5, 300], [2**15 - 1, -(2**15)]),
    "i": ([None, 0, 1, -1, 5, 127, 1000], [2**31 - 1, -(2**31), 2**24 + 1]),
    "j": ([None, 0, 1, 2, -3, 5], [2**31 - 1, -(2**31)]),
    "big": ([None, 0, 1, -7, 10**9], [2**63 - 1, -(2**63), 2**53 + 1]),
    "d": (
        [None, *map(Decimal, ("0.00", "1.50", "-1.50", "100.00", "0.01"))],
        [Decimal("9999999999.99"), Decimal("-9999999999.99")],
    ),
    "e": (
        [None, *map(Decimal, ("0.000", "1.500", "-0.001", "2.000"))],
        [Decimal("99.999"), Decimal("-99.999")],
    ),
    "wide": (
        [None, *map(Decimal, ("0.0000", "1.5000", "-1.2345", "100.0000"))],
        [Decimal("9999999999999999.9999"), Decimal("1234567890123456.7891")],
    ),
    "vast": (
        [None, *map(Decimal, ("0.000000", "1.500000", "-100.000001"))],
        [Decimal("9" * 30 + ".999999"), Decimal("-123456789012345678901234567890.123456")],
    ),
    "f": ([None, 0.0, 1.5, 0.1, -2.0, 5.0], [-0.0, math.nan, math.inf, -math.inf, 1e300, 2.0**53]),
    "g": ([None, 0.0, 1.5, 0.3, 3.0], [-0.0, math.nan, -math.inf, 1e-320]),
    "r": ([None, 0.0, 1.5, -2.0, 0.10000000149011612], [-0.0, math.nan, math.inf]),
    "s": (
        [None, "", "a", "A", "b", "aa", " a ", "a_b", "abc", "5"],
        ["é", "z\U0001f600", "\ta", "a\nb", "İ", "\ufffd"],
    ),
    "u": ([None, "", "a", "ab", "B"], ["é", "\U0001f600"]),
    "b": ([None, True, False], [True]),
    "c": ([None, True, False], [False]),
    "t": ([None, date(2024, 2, 29), date(1970, 1, 1)], [date(1, 1, 1), date(9999, 12, 31)]),
    "z": (
        [None, datetime(2024, 2, 29, 12, 0, 0, 1, UTC), datetime(1970, 1, 1, tzinfo=UTC)],
        [datetime(1, 1, 1, tzinfo=UTC)],
    ),
    "n": (
        [None, datetime(2024, 2, 29, 12, 0, 0, 1), datetime(1970, 1, 1)],
        [datetime(1, 1, 1)],
    ),
}
_LITERALS = {
    "number": ["0", "1", "-1", "2", "5", "127", "1.5", "-0.5", "0.05", "100.00", "2147483648",
               "1e0", "2.5e-1", "9007199254740993", "-2147483648", "12345678901234567890"],
    "string": ["''", "'a'", "'A'", "'é'", "'ab'", "'zz'"],
    "date": ["DATE '2024-02-29'", "DATE'1970-01-01'"],
    "instant": ["TIMESTAMP '2024-02-29T12:00:00.000001Z'", "timestamp '1970-01-01 00:00:00Z'"],
    "local": ["TIMESTAMP_NTZ '2024-02-29 12:00:00'"],
    "boolean": ["true", "FALSE"],
}  # fmt: skip
_COLUMNS = {
    "number": ["tiny", "small", "i", "j", "big", "d", "e", "wide", "vast", "f", "g", "r"],
    "string": ["s", "u", "S"],
    "boolean": ["b", "c"],
    "date": ["t"],
    "instant": ["z"],
    "local": ["n"],
}
_PATTERNS = ["'a%'", "'%b'", "'%a%'", "'_'", "'a_b'", "'%'", "''", "'a'", "'_%'", "'a%b'", "'%.%'"]
CASTS = ["bigint", "double", "decimal(20,4)", "decimal(38,4)", "int", "string", "decimal(30,10)",
         "smallint", "float", "decimal(12,1)"]  # fmt: skip
_OF_NUMBERS = [f"{name}({{}})" for name in ("sum", "sum", "min", "max", "avg", "avg")]
_COMPARISONS = ["=", "==", "<>", "!=", "<", "<=", ">", ">="]
_OUTSIDE, _COLUMN = 0.02, 0.85  # of what stands at the leaves


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values are the same to the bit, NaN aside."""
    if isinstance(ours, float) and isinstance(theirs, float) and not math.isnan(ours):
        return struct.pack("d", ours) == struct.pack("d", theirs)
    if isinstance(ours, float):
        return isinstance(theirs, float) and math.isnan(theirs)
    return type(ours) is type(theirs) and ours == theirs


def rows(rng: random.Random, count: int, usual: float = _USUAL) -> pa.Table:
    """Rows in which a value is at the edge of its type now and then."""
    return pa.table(
        {
            name: pa.array(
                [rng.choice(_VALUES[name][rng.random() > usual]) for _ in range(count)], kind
            )
            for name, kind in TYPES.items()
        }
    )


class Drawer:
    """Draws expressions over a row, or over the rows of a `firing`, whose number is `k`."""

    def __init__(self, rng: random.Random, *, firing: bool = False) -> None:
        self._rng = rng
        self._of_row = Drawer(rng) if firing else None
        self._forms: dict[str, list[Callable[[int], str]]] = {
            "boolean": [self._logic, self._logic, self._compare, self._compare, self._compare,
                        self._between, self._in, self._is_null, self._like],
            "number": [self._arithmetic, self._arithmetic, self._sign, self._length, self._cast],
            "string": [self._of_string],
        }  # fmt: skip

    def any(self, depth: int = 3) -> str:
        """An expression of any type, most of them boolean."""
        wanted = self._rng.choice(["boolean", "boolean", "number", "string", "date"])
        return self.of(wanted, depth)

    def of(self, wanted: str, depth: int) -> str:
        forms = self._forms.get(wanted, [])
        if depth <= 0 or (depth < 3 and self._rng.random() < 0.4) or not forms:
            return (
                self._leaf(wanted)
                if depth <= 0 or self._rng.random() < 0.7
                else self._branch(wanted, depth)
            )
        if self._rng.random() < 0.15:
            return self._branch(wanted, depth)
        return self._rng.choice(forms)(depth - 1)

    def _leaf(self, wanted: str) -> str:
        if self._rng.random() < _OUTSIDE:
            return self._rng.choice(
                ["NULL", "nvl(null, 1)", "cast('5' as int)", "7 div 2", "'s'", "2.5"]
            )
        if self._of_row is not None and self._rng.random() < 0.85:
            return self._aggregate(wanted, self._of_row)
        columns = _COLUMNS if self._of_row is None else {"number": ["k"]}
        if self._rng.random() < _COLUMN and wanted in columns:
            return self._rng.choice(columns[wanted])
        return self._rng.choice(_LITERALS[wanted])

    def _aggregate(self, wanted: str, row: Drawer) -> str:
        plain = self._rng.random() < 0.7
        part = self._rng.choice(_COLUMNS[wanted]) if plain else row.of(wanted, 1)
        if wanted == "number":
            count = f"count_if({row.of('boolean', 1)})"
            forms = ["count(*)", "count(1)", "count({})", count, *_OF_NUMBERS]
            return self._rng.choice(forms).format(part)
        return self._rng.choice(["min({})", "max({})"]).format(part)

    def _branch(self, wanted: str, depth: int) -> str:
        of = lambda: self.of(wanted, depth - 1)  # noqa: E731
        condition = lambda: self.of("boolean", depth - 2)  # noqa: E731
        number = "i" if self._of_row is None else "k"
        return self._rng.choice(
            [
                lambda: f"coalesce({of()}, {of()})",
                lambda: f"if({condition()}, {of()}, {of()})",
                lambda: f"CASE WHEN {condition()} THEN {of()} ELSE {of()} END",
                lambda: f"case when {condition()} then {of()} when {condition()} then {of()} end",
                lambda: f"case {number} when 1 then {of()} when 5 then {of()} else null end",
                lambda: f"case {number} when 1 then {of()} else {of()} end",
            ]
        )()

    def _logic(self, depth: int) -> str:
        parts = [self.of("boolean", depth) for _ in range(self._rng.randint(2, 3))]
        text = self._rng.choice([" AND ", " or "]).join(parts)
        return self._rng.choice(["({})", "not ({})", "{}"]).format(text)

    def _compare(self, depth: int) -> str:
        wanted = self._rng.choice(
            ["number", "number", "number", "string", "date", "instant", "local", "boolean"]
        )
        left, right = self.of(wanted, depth - 1), self.of(wanted, depth - 1)
        if wanted == "boolean":
            left, right = f"({left})", f"({right})"
        return f"{left} {self._rng.choice(_COMPARISONS)} {right}"

    def _between(self, depth: int) -> str:
        wanted = self._rng.choice(["number", "string", "date"])
        a, b, c = (self.of(wanted, depth - 1) for _ in range(3))
        return f"{a} {self._rng.choice(['', 'not '])}BETWEEN {b} AND {c}"

    def _in(self, depth: int) -> str:
        wanted = self._rng.choice(["number", "string", "date"])
        count = self._rng.choice([1, 2, 3, 12])
        options = ", ".join(self._rng.choice(_LITERALS[wanted]) for _ in range(count))
        return f"{self.of(wanted, depth - 1)} {self._rng.choice(['', 'NOT '])}IN ({options})"

    def _is_null(self, depth: int) -> str:
        wanted = self._rng.choice(["number", "string", "instant"])
        return f"{self.of(wanted, depth - 1)} is {self._rng.choice(['', 'NOT '])}null"

    def _like(self, depth: int) -> str:
        pattern = self._rng.choice(_PATTERNS)
        return f"{self.of('string', depth - 1)} {self._rng.choice(['', 'not '])}LIKE {pattern}"

    def _arithmetic(self, depth: int) -> str:
        operator = self._rng.choice(["+", "-", "*", "+", "-", "*", "/", "%"])
        left, right = self.of("number", depth - 1), self.of("number", depth - 1)
        return self._rng.choice(["{} {} {}", "({} {} {})", "-({} {} {})"]).format(
            left, operator, right
        )

    def _sign(self, _: int) -> str:
        return self._rng.choice(["abs({})", "-{}"]).format(self._leaf("number"))

    def _length(self, depth: int) -> str:
        return f"length({self.of('string', depth - 1)})"

    def _cast(self, depth: int) -> str:
        return f"cast({self.of('number', depth - 1)} as {self._rng.choice(CASTS)})"

    def _of_string(self, depth: int) -> str:
        return f"{self._rng.choice(['lower', 'upper', 'trim'])}({self.of('string', depth - 1)})"
