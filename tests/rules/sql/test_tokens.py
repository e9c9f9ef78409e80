"""Small readers of SQL: the names of types, words with a meaning of their own."""

from __future__ import annotations

import pytest

from tidegate.rules.sql.tokens import image_words, unsteady_words
from tidegate.rules.sql.types import sql_type


@pytest.mark.parametrize(
    "text",
    [
        "bigint",
        "DECIMAL( 12 , 2 )",
        "decimal",
        "timestamp_ntz",
        "varchar(10)",
        "array<string>",
        "map<string, array<int>>",
        "struct<a: int, b: struct<c: map<int, decimal(3)>>>",
        "struct<`a b` string>",
        "struct<select: int, not string, date: date>",
    ],
)
def test_type(text: str) -> None:
    assert sql_type(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "bigit", "int int", "decimal(0)", "decimal(39)", "decimal(3,4)", "decimal(a)", "varchar",
     "array", "array<int", "map<int>", "array<int, int>", "int; DROP TABLE t", "decimal(1", "["],
)  # fmt: skip
def test_no_type(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        sql_type(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("now() > x", ["now"]),
        ("x > CURRENT_TIMESTAMP", ["CURRENT_TIMESTAMP"]),
        ("rand ( 3 ) < 1 and uuid() = y", ["rand", "uuid"]),
        ("now > 3 and rand = 1", []),
        ("x = 'now()' or y = \"rand()\"", []),
        ("x = 'it''s' and y = 'a\\'b now()'", []),
        ("x = r'a\\' and now() > y", ["now"]),
        ("-- now()\nx > 1 /* rand() */", []),
        ("`current_date` > t.current_date", []),
        ("unix_timestamp('2020-01-01') > unix_timestamp()", ["unix_timestamp"]),
        ("unix_timestamp(x) > 3", []),
    ],
)
def test_g25_words_that_depend_on_when_they_run(text: str, found: list[str]) -> None:
    assert [word.name for word in unsteady_words(text)] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("new.x > OLD . y", ["new", "OLD"]),
        ("old > new", []),
        ("t.old.x > 1", []),
        ("x = 'old.x'", []),
        ("`old`.x > 1", ["old"]),
    ],
)
def test_g11_mentions_of_images(text: str, found: list[str]) -> None:
    assert [word.name for word in image_words(text)] == found
