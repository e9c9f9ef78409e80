"""What Delta keeps of a table, by its own word: the properties, and which versions it refuses."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.support.lake import Lake
from tidegate import rules
from tidegate.connectors.delta.catalog import Catalog
from tidegate.connectors.delta.keeping import keepings
from tidegate.engine.core.keeping import DAY_MICROS, FILES, LOG, Keeping, gone_at

BOOK = """
rulebook: b
tables:
  plain: {{path: "{folder}/plain"}}
  short: {{path: "{folder}/short"}}
  gone: {{path: "{folder}/gone"}}
events: {{row: {{on: insert, table: plain}}}}
rules: {{r: {{on: row}}}}
"""


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path)


def kept(lake: Lake) -> dict[str, Keeping]:
    book = rules.load(BOOK.format(folder=lake.folder))
    with closing(Catalog(lake.spark, book, "keeping")) as catalog:
        catalog.create()
        return {one.table: one for one in keepings(catalog, book.tables)}


def test_what_properties_say_and_what_they_leave_out(lake: Lake) -> None:
    lake.create("plain", "id INT")
    lake.append("plain", (1,))
    lake.create(
        "short",
        "id INT",
        deletedFileRetentionDuration="interval 36 hours",
        logRetentionDuration="interval 2 days",
        enableExpiredLogCleanup="false",
    )
    found = kept(lake)
    assert found == {
        "plain": Keeping("plain", 30 * DAY_MICROS, 7 * DAY_MICROS, oldest=0, head=1),
        "short": Keeping("short", None, DAY_MICROS * 3 // 2, oldest=0, head=0),
    }
    lake.sql("ALTER TABLE {short} UNSET TBLPROPERTIES (delta.enableExpiredLogCleanup)")
    lake.sql(
        "ALTER TABLE {short} SET TBLPROPERTIES (delta.deletedFileRetentionDuration = '9 days')"
    )
    again = kept(lake)["short"]
    assert (again.log_micros, again.limit, again.head) == (2 * DAY_MICROS, LOG, 2)


def test_delta_refuses_what_is_said_to_be_gone_but_never_the_last_version(lake: Lake) -> None:
    """Nothing was vacuumed here."""
    path = lake.create("plain", "id INT", enableInCommitTimestamps="false")
    lake.append("plain", (1,))
    lake.append("plain", (2,))
    now = time.time_ns() // 1_000
    ages = {0: 9 * DAY_MICROS, 1: 6 * DAY_MICROS, 2: 5 * DAY_MICROS}

    def readable(version: int) -> bool:
        lake._forget("plain")
        reader = lake.spark.read.format("delta").option("versionAsOf", version)
        try:
            return reader.load(path).schema.names == ["id"]
        except AnalysisException as error:
            return "BEYOND_DELETED_FILE_RETENTION" not in str(error)

    def said(version: int) -> bool:
        ends = gone_at(Keeping("plain", None, 7 * DAY_MICROS), now - ages[version])
        return ends is not None and ends[0] > now and ends[1] == FILES

    for version, age in ages.items():
        lake.place("plain", version, now - age)
    assert [readable(version) for version in ages] == [said(version) for version in ages]
    assert [said(version) for version in ages] == [False, True, True]
    for version in ages:
        lake.place("plain", version, now - (20 - version) * DAY_MICROS)
    assert [readable(version) for version in ages] == [False, False, True]
