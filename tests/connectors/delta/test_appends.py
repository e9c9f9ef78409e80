"""Plain appends are read from their files as Spark reads them; everything else is left to Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.lake import Lake, jobs_so_far
from tests.support.rulebooks import table
from tidegate.connectors.delta.appends import FILES_MAX, added_files, readable
from tidegate.connectors.delta.changes import changes, to_arrow
from tidegate.connectors.delta.feed import DeltaFeed
from tidegate.engine.core.ports import ReadRequest
from tidegate.engine.core.values import TableRange
from tidegate.rules.errors import EngineError

TYPES = {
    "flag": "BOOLEAN", "tiny": "TINYINT", "small": "SMALLINT", "whole": "INT", "big": "BIGINT",
    "single": "FLOAT", "double": "DOUBLE", "price": "DECIMAL(12, 2)", "huge": "DECIMAL(38, 10)",
    "text": "STRING", "short": "VARCHAR(8)", "bytes": "BINARY", "day": "DATE", "at": "TIMESTAMP",
    "local": "TIMESTAMP_NTZ",
}  # fmt: skip
ROWS = (
    "(true, 1Y, -2S, 3, 4L, 1.5F, double('-0.0'), 12.34BD, 1e-10BD, 'ä\\u2028', 'a ', X'00ff', "
    "DATE'0001-01-01', TIMESTAMP'1582-10-04 23:59:59.999999', TIMESTAMP_NTZ'9999-12-31 23:59:59')",
    "(false, 127Y, 32767S, -2147483648, 9223372036854775807L, float('NaN'), double('inf'), "
    "-9999999999.99BD, 1234567890123456789012345678.5BD, '', '', X'', DATE'2024-02-29', "
    "TIMESTAMP'2024-03-31 02:30:00.000001', TIMESTAMP_NTZ'1900-01-01 00:00:00.5')",
    f"({', '.join(['NULL'] * len(TYPES))})",
)
SPOOLED = 10  # an estimate of so many rows makes the feed map them from a file


class Reading:
    """Versions [first, head] of a table, read by the feed and by Spark."""

    def __init__(self, lake: Lake, name: str, first: int = 1) -> None:
        self.spark, self.path = lake.spark, lake.path(name)
        self.table = table(name, self.path, start="now")
        self.feed = DeltaFeed(lake.spark, spool_rows=SPOOLED - 1)
        head = self.feed.head(self.table, None)
        instants = dict.fromkeys(range(first, head.head + 1), 0)
        self.span = TableRange(name, first, head.head, instants, head.cursor)

    def agree(self, request: ReadRequest) -> tuple[int, bool]:
        """The number of rows, and whether the feed asked Spark. Fails where the two differ."""
        before = jobs_so_far(self.spark)
        found = self.feed.read(self.table, self.span, request)
        asked = jobs_so_far(self.spark) > before
        expected = to_arrow(changes(self.spark, self.path, self.span, request), spool=False)
        assert columns(found) == columns(expected)
        assert texts(found) == texts(expected)
        return found.num_rows, asked


def columns(rows: pa.Table) -> list[tuple[str, pa.DataType]]:
    return list(zip(rows.schema.names, rows.schema.types, strict=True))


def texts(rows: pa.Table) -> list[str]:
    """The rows as texts, sorted: NaN is NaN, -0.0 is not 0.0."""
    return sorted(map(repr, rows.to_pylist()))


def request(*columns: str, changes: str = "insert") -> ReadRequest:
    return ReadRequest(columns=columns, changes=frozenset(changes.split()))


@pytest.mark.parametrize(
    "timestamps", [pytest.param("INT96", marks=pytest.mark.long), "TIMESTAMP_MICROS"]
)
def test_values_of_every_flat_type_are_sparks(lake: Lake, timestamps: str) -> None:
    lake.create("t", ", ".join(f"{name} {kind}" for name, kind in TYPES.items()))
    lake.spark.conf.set("spark.sql.parquet.outputTimestampType", timestamps)
    try:
        for row in ROWS:
            lake.sql(f"INSERT INTO {{t}} VALUES {row}")
    finally:
        lake.spark.conf.unset("spark.sql.parquet.outputTimestampType")
    reading = Reading(lake, "t")
    assert reading.agree(request(*TYPES)) == (len(ROWS), False)
    reading.span = replace(reading.span, rows_estimate=SPOOLED)
    assert reading.agree(request(*TYPES)) == (len(ROWS), False)


def test_a_partitions_values_are_those_of_the_log(lake: Lake) -> None:
    lake.create("t", "id INT, day DATE, kind STRING", "PARTITIONED BY (day, kind)")
    kinds = ("a b", "ä%/=:", "", "NULL")
    for n, kind in enumerate(kinds):
        lake.sql(f"INSERT INTO {{t}} VALUES ({n}, DATE'2024-02-29', '{kind}'), ({n}, NULL, NULL)")
    assert Reading(lake, "t").agree(request("day", "id", "kind")) == (2 * len(kinds), False)
    assert Reading(lake, "t").agree(request("id")) == (2 * len(kinds), False)


@pytest.mark.long
def test_a_column_that_is_only_in_paths(lake: Lake) -> None:
    lake.create("t", "id INT, kind STRING", "PARTITIONED BY (kind)")
    lake.sql("INSERT INTO {t} VALUES (1, 'a'), (2, 'a'), (3, 'b')")
    reading = Reading(lake, "t")
    assert reading.agree(request("kind")) == (3, False)
    reading.span = replace(reading.span, rows_estimate=SPOOLED)
    assert reading.agree(request("kind")) == (3, False)


def test_rows_that_no_rule_wants_are_left_out_but_those_on_which_it_raises(lake: Lake) -> None:
    lake.create("t", "id INT, other INT")
    lake.append("t", *((n, 0) for n in (1, 2, 3, 3, 2147483647, None)))
    reading = Reading(lake, "t")
    for estimate in (0, SPOOLED):
        reading.span = replace(reading.span, rows_estimate=estimate)
        asked = replace(request("id"), only=("id + 1 = 3", "id = 3"))
        assert reading.agree(asked) == (4, False)
        asked = replace(request("id"), only=("id = 3", "hash(id) = 3"))
        assert reading.agree(asked) == (2, True)


def test_rows_that_nobody_wants_are_not_read(lake: Lake) -> None:
    """A rule listens to deletes alone; one that pairs images wants its hashes all the same."""
    lake.create("t", "id INT")
    lake.append("t", (1,), (2,))
    reading = Reading(lake, "t")
    assert reading.agree(request("id", changes="delete")) == (0, False)
    paired = replace(request("id", changes="insert update_preimage"), same=True)
    found = reading.feed.read(reading.table, reading.span, paired)
    spark = to_arrow(changes(lake.spark, reading.path, reading.span, paired), spool=False)
    assert columns(found) == columns(spark)
    assert sorted(found["id"].to_pylist()) == sorted(spark["id"].to_pylist()) == [1, 2]


@pytest.mark.long
def test_optimize_and_skipped_versions_have_no_rows(lake: Lake) -> None:
    lake.create("t", "id INT")
    lake.append("t", (1,))
    lake.append("t", (2,))
    lake.sql("OPTIMIZE {t}")
    lake.sql("DELETE FROM {t} WHERE id = 1")
    reading = Reading(lake, "t")
    reading.span = replace(reading.span, skipped=frozenset({2, 3, 4}))
    assert reading.agree(request("id")) == (1, False)


LEFT: dict[str, tuple[str, str, dict[str, str], list[str]]] = {
    "an update": ("id INT", "", {}, ["INSERT INTO {t} VALUES (1), (2)", "UPDATE {t} SET id = 3"]),
    "a delete": (
        "id INT",
        "",
        {"enableDeletionVectors": "true"},
        ["INSERT INTO {t} VALUES (1), (2)", "DELETE FROM {t} WHERE id = 1"],
    ),
    "an overwrite": (
        "id INT",
        "",
        {},
        ["INSERT INTO {t} VALUES (1)", "INSERT OVERWRITE {t} VALUES (7)"],
    ),
    "mapped columns": (
        "id INT, x INT",
        "",
        {"columnMapping__mode": "name"},
        ["INSERT INTO {t} VALUES (1, 2)"],
    ),
    "char(n)": ("id CHAR(4)", "", {}, ["INSERT INTO {t} VALUES ('a')"]),
    "a nested column": (
        "id STRUCT<a: INT>",
        "",
        {},
        ["INSERT INTO {t} VALUES (named_struct('a', 1))"],
    ),
    "a partition by instants": (
        "id TIMESTAMP, n INT",
        "PARTITIONED BY (id)",
        {},
        ["INSERT INTO {t} VALUES (TIMESTAMP'2024-01-01 00:00:00', 1)"],
    ),
    "a widened column": (
        "id INT",
        "",
        {"enableTypeWidening": "true"},
        ["INSERT INTO {t} VALUES (1)", "INSERT INTO {t} VALUES (2)"],
    ),
}


SHORTLY = ("a delete", "mapped columns", "char(n)")


@pytest.mark.parametrize(
    "why",
    [pytest.param(why, marks=[] if why in SHORTLY else pytest.mark.long) for why in LEFT],
)
def test_spark_reads_what_is_no_plain_append(lake: Lake, why: str) -> None:
    columns, more, properties, statements = LEFT[why]
    lake.create("t", columns, more, **properties)
    for statement in statements:
        lake.sql(statement)
    rows, asked = Reading(lake, "t").agree(request("id"))
    assert rows
    assert asked


def test_spark_decides_a_where_that_arrow_cannot(lake: Lake) -> None:
    lake.create("t", "id INT")
    lake.append("t", (1,), (2,))
    asked = replace(request("id"), where={"p": "hash(id) > 0"})
    assert Reading(lake, "t").agree(asked) == (2, True)


REWRITTEN: dict[str, Callable[[pa.Table], pa.Table]] = {
    "another type": lambda rows: rows.set_column(0, "id", rows["id"].cast(pa.int32())),
    "another case": lambda rows: rows.rename_columns(["ID", "at"]),
    "no such column": lambda rows: rows.select(["at"]),
    "a calendar of Spark 2": lambda rows: rows.replace_schema_metadata(
        {"org.apache.spark.version": "2.4.8"}
    ),
}


@pytest.mark.parametrize("how", REWRITTEN)
def test_spark_reads_a_file_that_is_no_plain_one(lake: Lake, how: str) -> None:
    """Such files come from other writers."""
    lake.create("t", "id BIGINT, at DATE")
    lake.append("t", (1, date(2024, 1, 1)))
    (file,) = (lake.folder / "t").glob("*.parquet")
    pq.write_table(REWRITTEN[how](pq.ParquetFile(file).read()), file)
    reading = Reading(lake, "t")
    before = jobs_so_far(lake.spark)
    found = reading.feed.read(reading.table, reading.span, request("id", "at"))
    assert jobs_so_far(lake.spark) > before
    assert found.num_rows == 1


def test_a_file_that_is_gone_is_an_error_that_names_the_versions(lake: Lake) -> None:
    lake.create("t", "id BIGINT")
    lake.append("t", (1,))
    (file,) = (lake.folder / "t").glob("*.parquet")
    file.unlink()
    reading = Reading(lake, "t")
    with pytest.raises(EngineError) as error:
        reading.feed.read(reading.table, reading.span, request("id"))
    assert error.value.code == "version-gone"


@pytest.mark.long
def test_another_tables_files_are_left_to_spark(lake: Lake) -> None:
    lake.create("origin", "id BIGINT")
    lake.append("origin", (1,))
    lake.sql("CREATE TABLE {t} SHALLOW CLONE {origin}")
    lake.sql("INSERT INTO {t} VALUES (2)")
    assert Reading(lake, "t", first=0).agree(request("id")) == (2, True)
    assert Reading(lake, "t").agree(request("id")) == (1, False)


ADD = {"path": "a%20b.parquet", "partitionValues": {"k": None}, "dataChange": True, "stats": "{}"}


def test_which_commits_are_plain_appends() -> None:
    def files(*actions: object) -> list[str] | None:
        found = added_files("\n".join(map(json.dumps, actions)))
        return None if found is None else [file.path for file in found]

    info, mark = {"commitInfo": {"operation": "WRITE"}}, {"txn": {"appId": "a", "version": 1}}
    assert files(info, mark, {"add": ADD}) == ["a b.parquet"]
    assert files(info) == []
    for other in ("remove", "cdc", "metaData", "protocol", "domainMetadata", "unheard"):
        assert files(info, {"add": ADD}, {other: {}}) is None
    for wrong in (
        {"dataChange": False},
        {"dataChange": 1},
        {"deletionVector": {"storageType": "u"}},
        {"path": "file:/elsewhere/a.parquet"},
        {"path": "/elsewhere/a.parquet"},
        {"path": 7},
        {"partitionValues": {"k": 7}},
        {"partitionValues": [1]},
    ):
        assert files({"add": ADD | wrong}) is None
    assert files([1]) is None
    assert added_files("{") is None
    assert added_files("\n".join([json.dumps({"add": ADD})] * FILES_MAX)) is not None
    assert added_files("\n".join([json.dumps({"add": ADD})] * (FILES_MAX + 1))) is None


def test_a_feature_that_is_not_known_is_left_to_spark() -> None:
    assert readable({"changeDataFeed", "deletionVectors"}, {})
    assert readable((), {"delta.columnMapping.mode": "none"})
    assert not readable({"changeDataFeed", "ofTomorrow"}, {})
    assert not readable((), {"delta.columnMapping.mode": "id"})


@pytest.mark.long
def test_a_table_that_maps_its_columns_from_now_on(lake: Lake) -> None:
    """A renamed column's file has it by its former name, which another column may have taken."""
    lake.create("t", "id BIGINT, x BIGINT")
    lake.append("t", (1, 10))
    reading = Reading(lake, "t")
    assert reading.agree(request("id", "x")) == (1, False)
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    lake.sql("ALTER TABLE {t} RENAME COLUMN x TO y")
    lake.sql("ALTER TABLE {t} ADD COLUMN x BIGINT")
    head = reading.feed.head(reading.table, reading.span.cursor)
    lake.sql("INSERT INTO {t} VALUES (2, 20, 200)")
    head = reading.feed.head(reading.table, reading.span.cursor)
    last = head.commits[-1].version
    schema = [c.schema for c in head.commits if c.schema][-1]
    cursor = replace(reading.span.cursor, version=last, schema=schema)
    reading.span = TableRange("t", last, last, {last: 0}, cursor)
    assert reading.agree(request("id", "x")) == (1, True)
