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
from tidegate.connectors.delta.session import new_session
from tidegate.engine.core.keeping import DAY_MICROS, LOG, Keeping

_ENFORCED = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
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


@pytest.mark.long
def test_g14_a_version_is_seen_for_as_long_after_the_next_one_as_its_files_are_kept(
    lake: Lake,
) -> None:
    """Delta itself refuses it once its own commit is old, though nothing was vacuumed."""
    path = lake.create("plain", "id INT", enableInCommitTimestamps="false")
    lake.append("plain", (1,))
    lake.append("plain", (2,))
    now = time.time_ns() // 1_000
    for version, age in enumerate((20, 9, 1)):
        lake.place("plain", version, now - age * DAY_MICROS)
    plain, ours = lake.spark.newSession(), new_session(lake.spark)
    plain.conf.set(_ENFORCED, "true")

    def readable(session: SparkSession, version: int) -> bool:
        lake._forget("plain")
        try:
            rows = session.read.option("versionAsOf", version).load(path, "delta").count()
        except AnalysisException as error:
            if "BEYOND_DELETED_FILE_RETENTION" not in str(error):
                raise
            return False
        return rows == version

    assert [readable(plain, version) for version in range(3)] == [False, False, True]
    assert [readable(ours, version) for version in range(3)] == [True, True, True]
