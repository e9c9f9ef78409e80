"""What Delta does with markers and sessions: facts that the sink is built on (G16, G19, G31)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.support.lake import Lake
from tidegate.connectors.delta.catalog import latest_snapshot
from tidegate.connectors.delta.markers import prepare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP = "spark.databricks.delta.write.txnAppId"
VERSION = "spark.databricks.delta.write.txnVersion"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(spark, tmp_path_factory.mktemp("markers"))
    lake.create("t", "id BIGINT, n BIGINT")
    lake.append("t", (1, 0), (2, 0))
    return lake


class Table:
    """Runs statements under markers and says how many versions each added."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake

    def version(self) -> int:
        return max(int(f.stem) for f in Path(self.lake.path("t"), "_delta_log").glob("*.json"))

    def added(self, statement: str, app: str | None, number: int = 0) -> int:
        before = self.version()
        session = self.lake.spark.newSession()
        if app is not None:
            session.conf.set(APP, app)
            session.conf.set(VERSION, str(number))
        session.sql(statement.replace("{t}", f"delta.`{self.lake.path('t')}`"))
        return self.version() - before

    def prepared(self) -> Any:
        """The latest snapshot, which knows its markers from its checksum."""
        snapshot = latest_snapshot(self.lake.spark, self.lake.path("t"))
        assert prepare(self.lake.spark, snapshot)
        return snapshot

    def marker(self, app: str) -> int | None:
        found = latest_snapshot(self.lake.spark, self.lake.path("t")).transactions().get(app)
        return int(found.get()) if found.isDefined() else None


@pytest.fixture(scope="module")
def table(lake: Lake) -> Table:
    return Table(lake)


MERGE = (
    "MERGE INTO {t} t USING (SELECT {id} AS id) s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET n = t.n + 1"
)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {t} VALUES (9, 9)",
        pytest.param("UPDATE {t} SET n = n + 1 WHERE id = 1", marks=pytest.mark.long),
        pytest.param(MERGE.replace("{id}", "1"), marks=pytest.mark.long),
    ],
)
def test_an_equal_or_lower_marker_is_skipped_in_silence(table: Table, statement: str) -> None:
    app = f"skip {statement[:6]}"
    assert [table.added(statement, app, n) for n in (5, 5, 4, 6)] == [1, 0, 0, 1]
    assert table.marker(app) == 6


def test_g16_a_marker_from_the_checksum_skips_in_the_same_way(table: Table) -> None:
    table.added("INSERT INTO {t} VALUES (9, 9)", "other", 7)
    added = []
    for number in (5, 5, 4, 6):
        table.prepared()
        added.append(table.added("INSERT INTO {t} VALUES (9, 9)", "summed", number))
    assert added == [1, 0, 0, 1]
    assert table.prepared().transactions().get("other").get() == 7


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("UPDATE {t} SET n = 1 WHERE id = 777", marks=pytest.mark.long),
        MERGE.replace("{id}", "777"),
    ],
)
def test_update_and_merge_without_a_match_still_record_it(table: Table, statement: str) -> None:
    app = f"empty {statement[:6]}"
    assert table.added(statement, app, 3) == 1
    assert table.marker(app) == 3


def test_g19_a_delete_of_nothing_records_none(table: Table) -> None:
    table.added("DELETE FROM {t} WHERE id = 777", "delete", 3)
    assert table.marker("delete") is None


@pytest.mark.long
def test_g19_the_merge_that_replaces_a_delete_records_it(table: Table) -> None:
    merge = "MERGE INTO {t} USING (SELECT 1) AS one ON id = 777 WHEN MATCHED THEN DELETE"
    assert table.added(merge, "delete by merge", 3) == 1
    assert table.marker("delete by merge") == 3


def test_an_insert_of_nothing_records_it(table: Table) -> None:
    assert table.added("INSERT INTO {t} SELECT * FROM {t} WHERE false", "insert nothing", 3) == 1
    assert table.marker("insert nothing") == 3


@pytest.mark.long
def test_g20_a_restore_keeps_markers(table: Table) -> None:
    insert = "INSERT INTO {t} VALUES (5, 5)"
    before = table.version()
    assert table.added(insert, "restored", 3) == 1
    assert table.added(f"RESTORE {{t}} TO VERSION AS OF {before}", None) == 1
    assert table.marker("restored") == 3
    assert table.added(insert, "restored", 3) == 0


@pytest.mark.long
def test_g20_an_expired_marker_repeats_the_write(spark: SparkSession, tmp_path: Path) -> None:
    """The reason that a target which keeps its markers too short is refused."""
    lake = Lake(spark, tmp_path)
    lake.create("t", "id BIGINT, n BIGINT")
    table = Table(lake)
    assert table.added("INSERT INTO {t} VALUES (1, 1)", "expired", 3) == 1
    assert table.added("INSERT INTO {t} VALUES (1, 1)", "expired", 3) == 0
    option = "'delta.setTransactionRetentionDuration' = 'interval 0 hours'"
    table.added(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({option})", None)
    assert table.added("INSERT INTO {t} VALUES (1, 1)", "expired", 3) == 1


def test_g14_no_update_goes_through_an_old_version(table: Table) -> None:
    for old in ("{t} VERSION AS OF 0", f"delta.`{table.lake.path('t')}@v0`"):
        with pytest.raises(Exception, match=r"(?i)syntax|time.travel|version"):
            table.added(f"UPDATE {old} SET n = 0", None)


@pytest.mark.long
def test_settings_of_one_session_are_not_those_of_another(
    table: Table, spark: SparkSession
) -> None:
    marked = spark.newSession()
    marked.conf.set(APP, "leak")
    marked.conf.set(VERSION, "1")
    assert spark.conf.get(APP, None) is None
    assert spark.newSession().conf.get(APP, None) is None
    assert table.added("INSERT INTO {t} VALUES (8, 8)", None) == 1
    assert table.marker("leak") is None


@pytest.mark.long
def test_a_temporary_view_hides_a_table_in_its_session_only(
    table: Table, spark: SparkSession
) -> None:
    path = table.lake.path("t")
    spark.sql("CREATE DATABASE hidden")
    spark.sql(f"CREATE TABLE hidden.t USING delta LOCATION '{path}'")
    one, other = spark.newSession(), spark.newSession()
    one.sql("USE hidden")
    other.sql("USE hidden")
    one.read.format("delta").option("versionAsOf", 0).load(path).createOrReplaceTempView("t")
    assert one.table("t").count() == 0
    assert other.table("t").count() > 0
    assert one.table("hidden.t").count() > 0  # the reason that conditions name tables unqualified
    spark.sql("DROP DATABASE hidden CASCADE")
    assert Path(path, "_delta_log").is_dir()
    assert spark.read.format("delta").load(path).count() > 0


def test_user_metadata_is_in_the_commit(table: Table, spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.commitInfo.userMetadata", '{"tidegate": 1}')
    session.sql(f"INSERT INTO delta.`{table.lake.path('t')}` VALUES (7, 7)")
    log = table.lake.log("t", table.version()).read_text()
    assert '"userMetadata":"{\\"tidegate\\": 1}"' in log


def test_g21_a_marker_that_another_writer_has_set_meanwhile_is_a_conflict(
    table: Table, lake: Lake
) -> None:
    """A writer that had looked for its marker before it slept does not land, also where the marker
    came from the checksum."""
    table.added("INSERT INTO {t} VALUES (9, 9)", "awake", 1)
    table.prepared()
    jvm: Any = lake.spark._jvm
    delta = jvm.org.apache.spark.sql.delta
    none = jvm.scala.Option.empty()
    log = delta.DeltaLog.forTable(lake.spark._jsparkSession, lake.path("t"))
    stale = log.startTransaction(none, none)
    assert stale.txnVersion("slept") == -1
    assert table.added("INSERT INTO {t} VALUES (9, 9)", "slept", 1) == 1
    nothing = getattr(getattr(jvm, "scala.collection.immutable.Nil$"), "MODULE$")
    by_hand = getattr(delta.DeltaOperations, "ManualUpdate$")
    before = table.version()
    with pytest.raises(Py4JJavaError, match="ConcurrentTransactionException"):
        stale.commit(nothing, getattr(by_hand, "MODULE$"))
    assert table.version() == before
