"""Filters on Arrow: what is in the closed list, and what is left to Spark (G30)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tidegate.engine.core.evaluator import filters
from tidegate.engine.core.evaluator.filters import compile_filter, decide
from tidegate.engine.core.evaluator.nodes import RaisingError, UndecidedError

TYPES = {
    "i": pa.int32(),
    "j": pa.int32(),
    "big": pa.int64(),
    "tiny": pa.int8(),
    "d": pa.decimal128(12, 2),
    "e": pa.decimal128(12, 2),
    "wide": pa.decimal128(30, 10),
    "f": pa.float64(),
    "s": pa.string(),
    "Mixed": pa.string(),
    "b": pa.bool_(),
    "t": pa.date32(),
    "z": pa.timestamp("us", "UTC"),
    "n": pa.timestamp("us"),
    "r": pa.float32(),
    "l": pa.list_(pa.int32()),
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
        "z is null or r is not null or l is null",
        "t >= DATE '2024-02-29' AND t < cast('2024-03-01' as date)",
        "z > TIMESTAMP '2024-02-29T10:00:00.5Z'",
        "n > TIMESTAMP_NTZ '2024-02-29 10:00:00'",
        "`mixed` <> '' and MIXED != 'x'",
        "not b and b = true",
        "tiny > 1000",
        "i = big and i = 1.5 and d = 1.555 and r = 1.5 and f = d",
        "i + 1 = 2 and d * 2 > 3.5 and i / 2 > 0.4 and i % 2 = 0 and -i < abs(j)",
        "d % 3 = 0 and d / e > 0.5 and d / i > 2",
        "case when b then i else 0 end > 1 and if(b, d, 0) > 1",
        "case s when 'a' then 1 when 'b' then 2 end = 2",
        "coalesce(d, 0) > 1",
        "cast(i as bigint) = big and cast(d as double) > f and cast(i as string) = s",
        "cast(big as int) = 1 and cast(d as decimal(5,1)) = 1 and cast(d as smallint) = j",
        "s like 'a%' and s not like '%_b'",
        "lower(s) = 'a' and upper(s) = 'A' and length(trim(s)) > 2",
        " or ".join(f"i = {n}" for n in range(2_000)),
    ],
)
def test_forms_of_the_list(text: str) -> None:
    assert compile_filter(text, TYPES) is not None


@pytest.mark.parametrize(
    "text",
    [
        "i = '1'",  # a cast of the text could fail
        "s = 1",
        "cast(s as int) = 1",
        "cast(f as bigint) = 1",
        "cast(f as decimal(5,2)) = 1",
        "cast(5 as bigint) = big",
        "cast(i as varchar(3)) = '1'",
        "cast(t as timestamp) = z",  # the session's time zone decides
        "t = z",
        "n = z",
        "z > '2024-01-01'",
        "z > TIMESTAMP '2024-01-01 00:00:00'",
        "z > TIMESTAMP_LTZ '2024-01-01 00:00:00Z'",
        "t = DATE '2023-02-29'",
        "t = DATE '2024-2-9'",
        "t = '2024-01-01'",
        "t + 1 = t",
        "i = r",  # ANSI decides the common type
        "i + r > 1",
        "wide / 2 > 1",
        "-(wide * 100000) > 0",  # Spark cuts off the digits beyond 34
        "abs(wide * 100000) > 0",
        "d / big > 1",  # bigint has more digits than a word
        "wide * wide > 1",  # more digits than 38
        "d = 123456789012345678901234567890123456789",
        "wide % 2 = 1",
        "i < 9223372036854775808",  # for Spark true, of null too
        "i div 2 = 1",
        "i <=> 1",
        "i in (1, null)",
        "i in (j, 1)",
        "i in ()",
        "i = null",
        "f in (" + ", ".join(f"{n}e0" for n in range(11)) + ")",
        "s like 'a' escape '/'",
        r"s like 'a\_'",
        "s like concat('a', '%')",
        "s ilike 'a'",
        "s rlike 'a'",
        "lower(i) = 'a'",
        "ltrim(s) = 'a'",
        "length(l) = 1",
        "l = l",
        "nvl(i, 1) = 1",
        "mod(i, 2) = 1",
        "try_cast(i as bigint) = 1",
        "i::bigint = 1",
        "count(i) = 1",
        "i in (select 1)",
        "a = 1",
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
        "f = 1e999",
        "i = 1.",
        "i = 1L",
        "i not null",  # no Spark SQL
        "i not is null",
        "i between 1 2",
        "i is not unknown",
        "b is true",
        "b = i is null",
        "i is null = b",
        "i = j = b",
        "`old.i` = 1",
        "true",
        "1 = 1",  # Spark evaluates constants when it plans
        "i + 1",
        "s",
        "abs(5) > i",
        "not i",
        "-s = 1",
        "coalesce(i, s) = 1",
        "case when i then 1 end = 1",
        "if(b, 1) = 1",
        "(" * 200 + "i = 1" + ")" * 200,
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
    assert compile_filter("`old.i` = 1", types) is None


def test_columns_that_differ_in_case_alone_are_not_told_apart() -> None:
    types = {"a": pa.int32(), "A": pa.int32(), "b": pa.int32()}
    assert compile_filter("a = 1", types) is None
    assert compile_filter("b = 1", types) is not None


def test_a_name_with_a_dot_is_no_field() -> None:
    types = {"a.b": pa.int32(), "a": pa.struct([("b", pa.int32())])}
    assert compile_filter("a.b = 1", types) is None
    assert compile_filter("a is null", types) is not None


def test_columns_that_no_array_holds_are_taken_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = compile_filter("s like 'a%' and i > 0", {"s": pa.string(), "i": pa.int64()})
    assert found
    columns = {"s": pa.chunked_array([["a", "b"], ["ab"]]), "i": pa.chunked_array([[1], [1, 1]])}
    whole = found.run(columns).tolist()
    monkeypatch.setattr(filters, "JOINED_BYTES_MAX", 1)
    assert found.run(columns).tolist() == whole == [True, False, True]


def test_null_is_not_true_and_chunks_are_one_column() -> None:
    found = compile_filter("i + 1 > 1", {"i": pa.int32()})
    assert found
    column = pa.chunked_array([[0, None], [], [1]], pa.int32())
    assert found.run({"i": column}).tolist() == [False, False, True]
    assert found.run({"i": pa.chunked_array([], pa.int32())}).tolist() == []


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("i + 1 > 0", [2**31 - 1]),
        ("i - 1 > 0", [-(2**31)]),
        ("i * 2 > 0", [2**30]),
        ("-i > 0", [-(2**31)]),
        ("abs(i) > 0", [-(2**31)]),
        ("1 / i > 0", [0]),
        ("1 % i > 0", [0]),
        ("i = 0 OR 1 / (i - 1) > 0", [1]),
        ("i = 0 AND 1 / i > 0", [0]),
        ("if(i = 0, 1 / i, 1) > 0", [0]),
        ("coalesce(1 / i, 1) > 0", [0]),
    ],
)
def test_rows_on_which_spark_may_raise_are_not_decided(text: str, values: list[int]) -> None:
    found = compile_filter(text, {"i": pa.int32()})
    assert found
    for rows in (values, [5, None, *values]):
        with pytest.raises(UndecidedError):
            found.run({"i": pa.chunked_array([pa.array(rows, pa.int32())])})


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("i <> 0 AND 10 / i > 1", [False, True, False, False]),
        ("not (i = 0 or 10 / i <= 1)", [False, True, False, False]),
        ("case when i <> 0 then 10 / i end > 1", [False, True, False, False]),
        ("if(i = 0, 0, 10 / i) > 1", [False, True, False, False]),
        ("coalesce(if(i = 0, 5, null), 10 / i) > 1", [True, True, False, False]),
    ],
)
def test_a_part_is_evaluated_only_where_it_is_needed(text: str, held: list[bool]) -> None:
    found = compile_filter(text, {"i": pa.int32()})
    assert found
    rows = pa.chunked_array([pa.array([0, 5, None, 20], pa.int32())])
    assert found.run({"i": rows}).tolist() == held


ROWS = pa.table(
    {
        "i": pa.array([6, None, 0, 7, 0], pa.int32()),
        "s": ["a", "b", None, "é", "a"],
        "old": pa.array([{"i": 1}, None, {"i": 0}, {"i": 9}, None], pa.struct([("i", pa.int32())])),
    }
)


def test_g25_predicates_over_rows_at_hand() -> None:
    said = decide({"a": "12 / i > 1", "b": "new.i > old.i", "c": "s = 'a'"}, ROWS)
    assert said is not None
    assert said.to_pydict() == {
        "a": [True, False, None, True, None],
        "b": [True, False, False, False, False],
        "c": [True, False, False, False, True],
    }
    assert decide({"a": "12 / i > 1"}, ROWS.slice(0, 0)) == pa.table(
        {"a": pa.array([], pa.bool_())}
    )


def test_predicates_that_only_spark_decides() -> None:
    assert decide({"a": "i = 1", "b": "s rlike 'a'"}, ROWS) is None
    with pytest.raises(UndecidedError) as found:
        decide({"a": "12 / i > 1 and upper(s) = 'A'"}, ROWS.slice(3))
    assert not isinstance(found.value, RaisingError)
