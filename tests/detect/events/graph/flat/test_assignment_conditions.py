"""A comparison of two places means the same where it is decided while assignments are made, and
where it is asked of assignments: `not (not (..))` is no comparison."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.history import run
from tidegate import detect
from tidegate.rules import load

SIGNS = ("<", "<=", "=", "<>", ">=", ">")
SAME = ("=", "<>")
FAR = Decimal("123456789012345678901234567890.5")
COLUMNS: dict[str, tuple[str, pa.DataType, Sequence[Any]]] = {
    "n": ("bigint", pa.int64(), (0, 1, -3, 2**62, -(2**63), 2**63 - 1)),
    "i": ("int", pa.int32(), (0, 1, -3, 2**31 - 1)),
    "x": ("double", pa.float64(), (0.0, -0.0, 1.5, -inf, inf, nan)),
    "y": ("float", pa.float32(), (0.0, -0.0, 1.5, -2.25, nan)),
    "d": ("decimal(12,2)", pa.decimal128(12, 2), (Decimal("0.05"), Decimal(1), Decimal("-3.50"))),
    "e": ("decimal(38,4)", pa.decimal128(38, 4), (FAR, -FAR, Decimal(1), Decimal("-3.5"))),
    "s": ("string", pa.string(), ("", "a", "b", "\u00e4")),
    "b": ("boolean", pa.bool_(), (True, False)),
    "t": ("date", pa.date32(), (date(2026, 3, 1), date(1969, 7, 20))),
    "at": ("timestamp", pa.timestamp("us", "UTC"), (datetime(2026, 3, 1), datetime(1969, 7, 20))),
}
COMPARED = (
    *(("a.n", "b.n"), ("b.n", "a.n"), ("a.n", "b.n + 1"), ("2 * a.i", "b.n"), ("abs(a.n)", "b.n")),
    *(("a.x", "b.x"), ("a.x", "b.y"), ("a.y", "b.n"), ("a.x + b.x", "b.x"), ("a.d", "b.d")),
    *(("1.1 * a.d", "b.n"), ("a.e", "b.e"), ("a.e", "b.d"), ("a.x", "b.e"), ("a.i", "a.n")),
    *(("a.s", "b.s"), ("a.b", "b.b"), ("a.t", "b.t"), ("a.at", "b.at"), ("a.n", "b.e")),
)
EVENTS = """
rulebook: r
events: {{a: {{signal: {{{0}}}}}, b: {{signal: {{{0}}}}}, c: {{signal: {{{0}}}}}}}
rules:
"""
RULE = '  r{}: {{on: "{} within 1 h", where: "{}", context: unrestricted}}\n'


def history(count: int = 60) -> pa.Table:
    random = np.random.default_rng(11)
    columns = {"event": pa.array(random.choice([*"abc"], count)), "time": pa.array(range(count))}
    for name, (_, kind, values) in COLUMNS.items():
        drawn = [[*values, None][n] for n in random.integers(0, len(values) + 1, count)]
        columns[name] = pa.array(drawn, kind)
    return pa.table(columns)


def found_by(on: str, conditions: Sequence[str]) -> list[list[list[int]]]:
    """The constituents that each condition leaves."""
    fields = ", ".join(f"{name}: '{kind}'" for name, (kind, _, _) in COLUMNS.items())
    rules = "".join(RULE.format(n, on, condition) for n, condition in enumerate(conditions))
    table = detect(EVENTS.format(fields) + rules, history())
    found: dict[str, list[list[int]]] = {f"r{n}": [] for n in range(len(conditions))}
    columns = (table.column(name).to_pylist() for name in ("rule", "constituents"))
    for rule, constituents in zip(*columns, strict=True):
        found[rule].append(constituents)
    return [*found.values()]


@pytest.mark.parametrize("on", ["a ; b", "(a and b) ; c"])
def test_a_comparison_is_decided_as_it_is_asked(on: str) -> None:
    conditions = [
        f"{left} {sign} {right}"
        for left, right in COMPARED
        for sign in (SAME if left in ("a.s", "a.b") else SIGNS)
    ]
    (every,) = found_by(on, ["a.n is null or a.n is not null"])
    decided = found_by(on, conditions)
    assert decided == found_by(on, [f"not (not ({condition}))" for condition in conditions])
    assert sum(0 < len(found) < len(every) for found in decided) > 60


LACKED = """
rulebook: r
tables: {t: {path: /t}}
events: {a: {on: insert, table: t}, b: {signal: {v: bigint}}}
rules:
"""


def test_a_column_that_a_table_lacks_compares_as_null() -> None:
    conditions = ("a.lacked = b.v", "b.v <= a.lacked", "a.lacked <> b.v", "a.v = b.v")
    rules = "".join(RULE.format(n, "a ; b", condition) for n, condition in enumerate(conditions))
    history = {"event": [*"ab"], "time": pa.array([0, 1]), "v": pa.array([0, 0])}
    assert detect(LACKED + rules, pa.table(history)).column("rule").to_pylist() == ["r3"]


def test_what_names_places_that_may_be_empty_is_asked_of_assignments() -> None:
    """Of `any(2, a, b, c)` one place is empty: its column is null."""
    conditions = ("a.n < b.n", "c.n is null", "c.n > 0")
    decided = found_by("any(2, a, b, c)", conditions)
    assert decided == found_by("any(2, a, b, c)", [f"not (not ({each}))" for each in conditions])
    assert all(decided)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.string()])
def test_texts_compare_whatever_their_offsets_are(kind: pa.DataType) -> None:
    """Polars writes strings of 64 bits."""
    texts = pa.array(["x", "x", "y"]).cast(kind)
    table = pa.table({"event": [*"abb"], "time": [1, 2, 3], "s": texts})
    book = EVENTS.format("s: string") + RULE.format(0, "a ; b", "a.s = b.s")
    assert detect(book, table).column("constituents").to_pylist() == [[0, 1]]


@pytest.mark.parametrize(
    ("kind", "value"),
    [("array<string>", ["x"]), ("struct<x: bigint>", {"x": 1}), ("binary", b"x")],
)
def test_a_column_that_does_not_compare_is_asked_for_null(kind: str, value: Any) -> None:
    """In a `where`, and counted in a window."""
    table = pa.table({"event": [*"abab"], "time": [1, 2, 3, 4], "s": [value, None, None, None]})
    events = EVENTS.format(f"s: '{kind}'")
    asked = detect(events + RULE.format(0, "a ; b", "a.s is not null and b.s is null"), table)
    assert asked.column("constituents").to_pylist() == [[0, 1], [0, 3]]
    counted = "  r: {on: {over: {window: 10 s, of: [a, b], fire: count(s) = 1}}}\n"
    assert detect(events + counted, table).column("constituents").to_pylist() == [[0]]


def test_columns_that_do_not_compare_are_counted_together() -> None:
    lines = [("a", 1, {"v": 7}), ("b", 2, {"v": "x"}), ("b", 3, {"v": None}), ("a", 4, {"v": 8})]
    lines = [(name, time * 1_000_000, fields) for name, time, fields in lines]
    fire = "{over: {window: 10 s, of: [a, b], fire: count(v) = 3}}"
    events = "{a: {signal: {v: bigint}}, b: {signal: {v: string}}}"
    book = load(f"rulebook: r\nevents: {events}\nrules: {{r: {{on: {fire}}}}}")
    for cuts in ([], [2_500_000]):
        (found,) = (json.loads(line) for line in run(book, lines, cuts))
        assert [each["time"] for each in found["constituents"]] == [1, 2, 3, 4]
