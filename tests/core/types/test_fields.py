"""Fields of explicit events, and Spark types without Spark."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.support.rulebooks import event, rulebook, signal, table
from tidegate.engine.core.parameters import parameter_schema
from tidegate.engine.core.types.fields import check_fields, fields_table
from tidegate.engine.core.types.spark import arrow_schema, arrow_type, plain_columns
from tidegate.rules.errors import InputError


@pytest.mark.parametrize(
    ("ddl", "kind"),
    [
        ("bigint", pa.int64()),
        ("DECIMAL(12, 2)", pa.decimal128(12, 2)),
        ("decimal", pa.decimal128(10, 0)),
        ("varchar(10)", pa.string()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("array<map<string,int>>", pa.list_(pa.map_(pa.string(), pa.int32()))),
        (
            "struct<a: int, `b c`: array<double>>",
            pa.struct([("a", pa.int32()), ("b c", pa.list_(pa.float64()))]),
        ),
    ],
)
def test_types(ddl: str, kind: pa.DataType) -> None:
    assert arrow_type(ddl) == kind


@pytest.mark.parametrize("ddl", ["", "integr", "decimal(39,2)", "array<int", "int int", "map<int>"])
def test_no_types(ddl: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        arrow_type(ddl)


def test_a_schema_keeps_what_arrow_has() -> None:
    nested = {"type": "array", "elementType": "integer", "containsNull": True}
    fields: list[dict[str, Any]] = [
        {"name": "a", "type": "long"},
        {"name": "l", "type": nested},
        {"name": "v", "type": "variant"},
        {"name": "c", "type": "string", "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(3)"}},
    ]
    text = json.dumps({"type": "struct", "fields": fields})
    found = arrow_schema(text)
    assert found.names == ["a", "l", "c"]
    assert found.field("l").type == pa.list_(pa.int32())
    assert plain_columns(text) == {"a", "l", "v"}


@pytest.mark.parametrize(
    ("ddl", "value", "stored", "arrived"),
    [
        ("int", "7", 7, 7),
        ("decimal(12,2)", "1.5", "1.50", Decimal("1.50")),
        ("decimal(12,2)", 100, "100.00", Decimal("100.00")),
        ("double", "0.5", 0.5, 0.5),
        ("double", "-Infinity", "-Infinity", float("-inf")),
        ("string", "7", "7", "7"),
        ("string", "null", "null", "null"),
        ("boolean", "true", True, True),
        ("date", "2024-02-29", "2024-02-29", dt.date(2024, 2, 29)),
        (
            "timestamp",
            "2024-02-29T12:00:00+02:00",
            "2024-02-29T10:00:00Z",
            dt.datetime(2024, 2, 29, 10, tzinfo=dt.UTC),
        ),
        ("binary", "aGk=", "aGk=", b"hi"),
        ("array<int>", "[1,null]", [1, None], [1, None]),
        ("struct<a:int,b:string>", '{"a":1}', {"a": 1, "b": None}, {"a": 1, "b": None}),
        ("map<string,int>", '{"a":1}', [["a", 1]], [("a", 1)]),
        ("int", "null", None, None),
    ],
)
def test_values_are_stored_as_json_and_come_back(
    ddl: str, value: Any, stored: Any, arrived: Any
) -> None:
    declared = signal("s", x=ddl)
    found = check_fields(declared, {"x": value}, text=True)
    assert found == {"x": stored}
    assert fields_table(declared, [json.loads(json.dumps(found))])["x"].to_pylist() == [arrived]


@pytest.mark.parametrize(
    ("ddl", "value"),
    [
        ("int", "1.5"),
        ("tinyint", "200"),
        ("int", True),
        ("decimal(4,2)", "1.555"),
        ("decimal(4,2)", "100"),
        ("boolean", "yes"),
        ("date", "29.2.2024"),
        ("timestamp_ntz", "2024-02-29T12:00:00Z"),
        ("array<int>", "[1"),
        ("binary", "?"),
        ("double", "1e400"),
    ],
)
def test_values_of_another_type_are_refused(ddl: str, value: Any) -> None:
    with pytest.raises(InputError, match="field `x` of `s` is to be"):
        check_fields(signal("s", x=ddl), {"x": value}, text=True)


@pytest.mark.parametrize(
    ("ddl", "value", "said"),
    [
        ("array<bigint>", [1, None, "2"], "`x[2]` of `s` is to be bigint, but is '2'"),
        ("array<array<int>>", [[], [1, 2.5]], "`x[1][1]` of `s` is to be int, but is 2.5"),
        ("struct<y: double, z: double>", {"y": 1, "z": "far"}, "`x.z` of `s` is to be double"),
        ("struct<y: double>", {"yy": 1}, "`x.yy` of `s` is not declared; did you mean 'y'?"),
        ("array<struct<d: decimal(4,2)>>", [{"d": Decimal(100)}], "`x[0].d` of `s` is to be dec"),
        ("map<string,date>", {"a": "today"}, "`x[0].value` of `s` is to be date, but is 'today'"),
        ("array<int>", {"a": 1}, "`x` of `s` is to be array<int>, but is an object of 1"),
        ("string", ["\x1b" * 999], "`x` of `s` is to be string, but is a list of 1"),
        (
            "array<bigint>",
            [10**9_999],
            "`x[0]` of `s` is to be bigint, but is a number of many",
        ),
        ("double", Decimal("1e400"), "`x` of `s` is to be double, but is 1E+400"),
        ("double", Decimal("1e999999999"), "`x` of `s` is to be double, but is 1E+999999999"),
        ("decimal(38,18)", Decimal("1e-999999999"), "is to be decimal(38,18), but is 1E-999999999"),
    ],
)
def test_a_wrong_part_is_named_by_its_path(ddl: str, value: Any, said: str) -> None:
    with pytest.raises(InputError) as refused:
        check_fields(signal("s", x=ddl), {"x": value})
    assert said in refused.value.problems[0].message


def test_a_decimal_keeps_all_of_its_digits() -> None:
    digits = "12345678901234567890.123456789012345678"
    found = check_fields(signal("s", x="decimal(38,18)"), {"x": Decimal(digits)})
    assert found == {"x": digits}


def test_what_is_wrong_without_end_is_not_told_without_end() -> None:
    fields = {f"{'x' * 999}{n}": n for n in range(10_000)}
    with pytest.raises(InputError) as refused:
        check_fields(signal("s", account="bigint"), fields)
    assert len(refused.value.problems) == 100
    assert len(str(refused.value)) < 100_000


def test_every_wrong_field_is_named_at_once() -> None:
    declared = signal("s", account="bigint", total="double")
    with pytest.raises(InputError) as refused:
        check_fields(declared, {"acount": 1, "account": "x", "total": "y"})
    messages = str(refused.value)
    assert len(refused.value.problems) == 3
    assert "did you mean 'account'?" in messages
    assert "field `total` of `s` is to be double, but is 'y'" in messages
    assert check_fields(declared, {"account": 1, "total": None}) == {"account": 1, "total": None}
    with pytest.raises(InputError, match=r"`total` of `s` is missing \(double\)") as missing:
        check_fields(declared, {"account": "1"}, text=True)
    assert "--null total" in str(missing.value)


def test_parameters_of_event_types() -> None:
    columns = pa.schema([("id", pa.int64()), ("n", pa.int32())])
    book = rulebook(
        tables=[table("t", key=("id",)), table("u")],
        events=[
            event("i", "t", "insert"),
            event("few", "t", "insert", columns={"number": "n"}),
            event("up", "t", "update"),
            event("any_change", "u", "change"),
            signal("s", x="bigint"),
        ],
    )
    found = {
        name: parameter_schema(book, name, {"t": columns, "u": columns}) for name in book.events
    }
    assert found["i"] == columns
    assert found["few"] == pa.schema([("number", pa.int32())])
    assert found["up"].names == ["id", "n", "old"]
    assert found["up"].field("old").type == pa.struct(list(columns))
    assert found["any_change"].names == ["id", "n", "_change_type"]
    assert found["s"] == pa.schema([("x", pa.int64())])
