"""Markers and their commits, read from real tables; what that costs (G20)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.lake import Lake, jobs_so_far
from tidegate.connectors.delta import markers as markers_module
from tidegate.connectors.delta.catalog import latest_snapshot
from tidegate.connectors.delta.markers import DeltaMarkers, prepare
from tidegate.connectors.delta.session import new_session
from tidegate.engine.core.markers import Marker, Noted, Notes
from tidegate.rules.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LISTED_MAX = "spark.databricks.delta.setTransactionsInCrc.maxAllowed"


def write(
    lake: Lake, table: str, app_id: str, number: int, metadata: str = "", listed_max: int = 100
) -> None:
    """One marked commit, as a program writes it that is ours or not."""
    session = new_session(lake.spark)
    session.conf.set(LISTED_MAX, str(listed_max))
    session.conf.set("spark.databricks.delta.write.txnAppId", app_id)
    session.conf.set("spark.databricks.delta.write.txnVersion", str(number))
    session.conf.set("spark.databricks.delta.commitInfo.userMetadata", metadata)
    session.sql(f"INSERT INTO delta.`{lake.path(table)}` VALUES ({number})")


def note(entry: int, **more: Any) -> str:
    noted = {"app_id": "tidegate/s/shop/first", "entry": entry}
    return json.dumps({"tidegate": {**noted, **more}})


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(spark, tmp_path_factory.mktemp("marked"))
    lake.create("log", "id BIGINT", setTransactionRetentionDuration="interval 2 weeks 12 hours")
    lake.create("bare", "id BIGINT", enableInCommitTimestamps="false")
    write(lake, "log", "tidegate/s/shop/first", 1, note(1, firings=3))
    write(lake, "log", "stream", 7, "[]")
    lake.sql("INSERT INTO {log} VALUES (0)")
    write(lake, "log", "tidegate/s/shop/first", 4, note(4, sealed=True))
    write(lake, "log", "tidegate/s/shop/first/otherwise", 5, note(5, firings="many"))
    write(lake, "bare", "tidegate/other/shop/first", 2)
    return lake


@pytest.fixture(scope="module")
def markers(lake: Lake) -> DeltaMarkers:
    return DeltaMarkers(lake.spark, {t: lake.path(t) for t in ("log", "bare", "gone")})


def stamped(lake: Lake, table: str, version: int) -> int:
    """When a marker says that it was committed."""
    lines = map(json.loads, lake.log(table, version).read_text().splitlines())
    return int(next(line["txn"]["lastUpdated"] for line in lines if "txn" in line)) * 1_000


@pytest.mark.long
def test_the_latest_markers_of_each_app_id_and_how_long_they_last(
    lake: Lake, markers: DeltaMarkers
) -> None:
    log, bare = markers.latest(["log", "bare"])
    assert (log.table, log.location) == ("log", lake.path("log"))
    assert Counter(log.markers) == Counter(
        [
            Marker("s", "shop", "first", 4, stamped(lake, "log", 4)),
            Marker("s", "shop", "first/otherwise", 5, stamped(lake, "log", 5)),
        ]
    )
    assert (log.retention, log.retention_days) == ("interval 2 weeks 12 hours", 14.5)
    assert bare.markers == (Marker("other", "shop", "first", 2, stamped(lake, "bare", 1)),)
    assert (bare.retention, bare.retention_days) == (None, None)
    assert markers.latest([]) == ()


def test_the_commits_under_markers_with_their_firings(lake: Lake, markers: DeltaMarkers) -> None:
    def marker(number: int, version: int) -> Marker:
        info = json.loads(lake.log("log", version).read_text().splitlines()[0])["commitInfo"]
        return Marker("s", "shop", "first", number, info["inCommitTimestamp"] * 1_000)

    seal = Noted(4, marker(4, 4), firings=0, sealed=True)
    assert markers.noted("log", -1) == Notes((Noted(1, marker(1, 1), firings=3), seal), 0)
    assert markers.noted("log", 1) == Notes((seal,), 2)
    assert markers.noted("log", 5) == Notes((), 6)


@pytest.mark.long
def test_a_log_that_was_cleaned_says_where_it_begins(lake: Lake) -> None:
    lake.create("old", "id BIGINT")
    write(lake, "old", "tidegate/s/shop/first", 1)
    write(lake, "old", "tidegate/s/shop/first", 2, note(2))
    for version in (0, 1):
        lake.log("old", version).unlink()
    found = DeltaMarkers(lake.spark, {"old": lake.path("old")}).noted("old", -1)
    assert (found.first, [n.version for n in found.commits]) == (2, [2])


def test_a_table_that_cannot_be_read_is_named(lake: Lake, markers: DeltaMarkers) -> None:
    lake.create("gone", "id BIGINT")
    lake.log("gone", 0).write_text("{damaged")
    lake.log("gone", 0).with_suffix(".crc").unlink(missing_ok=True)  # which says it all, too
    with pytest.raises(EngineError, match="table `gone`: its markers cannot be read: ") as caught:
        markers.latest(["bare", "gone"])
    assert caught.value.code == "table-unreadable"


def forget_snapshots(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def test_g20_markers_come_from_the_checksum_file_and_without_one_from_a_job(
    lake: Lake, spark: SparkSession
) -> None:
    lake.create("summed", "id BIGINT")
    write(lake, "summed", "tidegate/s/shop/first", 1)
    write(lake, "summed", "tidegate/s/shop/second", 2)
    markers = DeltaMarkers(lake.spark, {"summed": lake.path("summed")})
    forget_snapshots(spark)
    before = jobs_so_far(spark)
    (with_checksum,) = markers.latest(["summed"])
    assert jobs_so_far(spark) == before
    for file in lake.log("summed", 0).parent.glob("*.crc"):
        file.unlink()
    forget_snapshots(spark)
    (without,) = markers.latest(["summed"])
    assert jobs_so_far(spark) > before
    assert {m.number for m in with_checksum.markers} == {1, 2}
    assert Counter(with_checksum.markers) == Counter(without.markers)


@pytest.mark.long
def test_g20_reading_markers_costs_no_job_that_the_first_write_would_not(
    lake: Lake, markers: DeltaMarkers, spark: SparkSession
) -> None:
    counts = []
    for number, read in ((11, False), (12, True)):
        forget_snapshots(spark)
        before = jobs_so_far(spark)
        if read:
            markers.latest(["log"])
            markers.latest(["log"])
        write(lake, "log", "tidegate/s/shop/first", number)
        counts.append(jobs_so_far(spark) - before)
    assert counts[0] == counts[1] > 0


@pytest.mark.long
def test_g16_a_marked_insert_into_a_prepared_table_costs_no_job_more_than_a_plain_one(
    lake: Lake, spark: SparkSession
) -> None:
    lake.create("quick", "id BIGINT")
    write(lake, "quick", "tidegate/s/shop/first", 1)  # the first checksum that lists markers

    def jobs(call: Callable[[], object]) -> int:
        before = jobs_so_far(spark)
        call()
        return jobs_so_far(spark) - before

    plain = jobs(lambda: lake.sql("INSERT INTO {quick} VALUES (2)"))
    assert prepare(spark, latest_snapshot(spark, lake.path("quick")))
    assert jobs(lambda: write(lake, "quick", "tidegate/s/shop/first", 3)) == plain
    assert jobs(lambda: write(lake, "quick", "tidegate/s/shop/first", 4)) > plain  # unprepared


def test_g16_what_no_checksum_lists_is_left_to_delta(
    lake: Lake, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    def prepared(table: str) -> bool:
        return prepare(spark, latest_snapshot(spark, lake.path(table)))

    lake.create("many", "id BIGINT")
    lake.log("many", 0).with_suffix(".crc").unlink()
    assert not prepared("many")  # it has no checksum
    write(lake, "many", "tidegate/s/shop/first", 1)
    assert prepared("many")
    write(lake, "many", "tidegate/s/shop/second", 2, listed_max=1)
    assert not prepared("many")  # it has too many
    assert not prepared("log")  # they expire there
    assert not caplog.records


def test_g16_another_delta_is_left_alone(
    lake: Lake,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One whose snapshots keep their markers in another way."""
    jvm: Any = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    source = Path(markers_module.__file__).with_name("Markers.java").read_text(encoding="utf-8")
    source = source.replace("package tidegate;", "package other;")
    compiler.cook(source.replace('"bitmap$"', '"other$"'))
    other = compiler.getClassLoader().loadClass("other.Markers").newInstance()
    monkeypatch.setattr(markers_module, "compiled", lambda *_: other)
    snapshot = latest_snapshot(spark, lake.path("bare"))
    assert not prepare(spark, snapshot)
    assert not prepare(spark, snapshot)
    [record] = caplog.records
    assert "in another way" in record.getMessage()


UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PASSING = {"path", "size", "modificationTime", "timestamp", "inCommitTimestamp", "createdTime"}
PASSING |= {"numOutputBytes"}


def actions(log: Path) -> Counter[str]:
    """The actions of a commit but for its markers; without names of files, sizes and times."""

    def lasting(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: lasting(v) for k, v in value.items() if k not in PASSING}
        return value

    lines = [json.loads(line) for line in UUID.sub("", log.read_text()).splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["tags"] = sorted(line["add"].get("tags") or {})
    return Counter(json.dumps(lasting(line)) for line in lines if "txn" not in line)


def on(*properties: str) -> str:
    """Table properties, as `name=value`, or `name` where they are on."""
    pairs = (one.partition("=") for one in properties)
    given = ", ".join(f"'delta.{name}' = '{value or 'true'}'" for name, _, value in pairs)
    return f"TBLPROPERTIES ({given})"


DEFAULTS = "feature.allowColumnDefaults=supported"
MAPPED = on("columnMapping.mode=name")
# feature -> columns, what follows them, and statements; rows are inserted before and after these
TABLES = {
    "appended": ("id BIGINT, n BIGINT", on("appendOnly"), []),
    "check": ("id BIGINT, n BIGINT", "", ["ALTER TABLE {t} ADD CONSTRAINT c CHECK (id < 9)"]),
    "checkpoints": (
        "id BIGINT, n BIGINT",
        on("checkpointPolicy=v2", "checkpointInterval=2"),
        ["INSERT INTO {t} VALUES (7, 7)"],
    ),
    "clustered": ("id BIGINT, n BIGINT", "CLUSTER BY (id)", ["OPTIMIZE {t}"]),
    "default": (
        "id BIGINT, n BIGINT DEFAULT 7",
        on(DEFAULTS),
        [],
    ),
    "deleted": ("id BIGINT, n BIGINT", "", ["DELETE FROM {t} WHERE id = 0"]),
    "dropped": (
        "id BIGINT, n BIGINT",
        on("enableDeletionVectors"),
        ["DELETE FROM {t} WHERE id = 0", "ALTER TABLE {t} DROP FEATURE deletionVectors"],
    ),
    "feed": ("id BIGINT, n BIGINT", on("enableChangeDataFeed"), []),
    "extended": ("id INT, n BIGINT", "", ["ALTER TABLE {t} ADD COLUMN z INT"]),
    "generated": ("id BIGINT, n BIGINT GENERATED ALWAYS AS (id * 2)", "", []),
    "identity": ("id BIGINT, n BIGINT GENERATED ALWAYS AS IDENTITY", "", []),
    "lengths": ("id CHAR(4), n VARCHAR(3)", "", []),
    "mapped": ("id BIGINT, n BIGINT", MAPPED, ["ALTER TABLE {t} RENAME COLUMN n TO m"]),
    "mapped by id": ("id BIGINT, n BIGINT", on("columnMapping.mode=id"), []),
    "not null": ("id BIGINT NOT NULL, n BIGINT", "", []),
    "optimized": ("id BIGINT, n BIGINT", on("autoOptimize.optimizeWrite"), []),
    "overwritten": ("id BIGINT, n BIGINT", "", ["INSERT OVERWRITE {t} (id, n) VALUES (5, 5)"]),
    "partitioned": ("id BIGINT, n BIGINT", "PARTITIONED BY (id)", []),
    "restored": ("id BIGINT, n BIGINT", "", ["RESTORE {t} TO VERSION AS OF 1"]),
    "several": (
        "id BIGINT, n BIGINT DEFAULT 7, s STRUCT<a: INT>",
        "CLUSTER BY (id) " + on("enableRowTracking", "enableDeletionVectors", DEFAULTS),
        ["UPDATE {t} SET n = 3 WHERE id = 0"],
    ),
    "timed": ("id BIGINT, n TIMESTAMP_NTZ", on("enableInCommitTimestamps"), []),
    "tracked": ("id BIGINT, n BIGINT", on("enableRowTracking"), []),
    "tracked later": (
        "id BIGINT, n BIGINT",
        "",
        ["ALTER TABLE {t} SET " + on("enableRowTracking")],
    ),
    "variant": ("id BIGINT, n VARIANT", "", []),
    "vectors": (
        "id BIGINT, n BIGINT",
        on("enableDeletionVectors"),
        ["UPDATE {t} SET n = 3 WHERE id = 0"],
    ),
    "widened": (
        "id INT, n BIGINT",
        on("enableTypeWidening"),
        ["ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT"],
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(TABLES))
def test_g16_prepared_tables_of_every_feature_take_rows_as_others_do(
    lake: Lake, spark: SparkSession, name: str
) -> None:
    """Side by side: the same statements, of which one table is prepared for each."""
    columns, more, between = TABLES[name]
    tables = (f"{name}_p", f"{name}_o")
    for table in tables:
        spark.sql(f"CREATE TABLE delta.`{lake.path(table)}` ({columns}) USING delta {more}")

    def insert(number: int) -> bool:
        was_prepared = prepare(spark, latest_snapshot(spark, lake.path(tables[0])))
        for table in tables:
            session = new_session(spark)
            session.conf.set("spark.databricks.delta.write.txnAppId", f"app {number % 2}")
            session.conf.set("spark.databricks.delta.write.txnVersion", str(number))
            session.sql(f"INSERT INTO delta.`{lake.path(table)}` (id) VALUES (0), ({number})")
        return was_prepared

    assert [insert(number) for number in (1, 2)] == [True, True]
    for statement in between:
        for table in tables:
            lake.sql(statement.replace("{t}", f"{{{table}}}"))
    # the last is skipped; RESTORE leaves no checksum
    assert [insert(number) for number in (3, 4, 4)] == [name != "restored", True, True]
    version = latest_snapshot(spark, lake.path(tables[0])).version()
    assert actions(lake.log(tables[0], version)) == actions(lake.log(tables[1], version))
    prepared, other = (spark.sql(f"SELECT * FROM delta.`{lake.path(t)}`") for t in tables)
    assert prepared.schema == other.schema
    assert Counter(prepared.collect()) == Counter(other.collect())
    forget_snapshots(spark)
    snapshot = latest_snapshot(spark, lake.path(tables[0]))
    assert prepare(spark, snapshot)
    computed = snapshot.setTransactions()
    markers = [computed.apply(n) for n in range(computed.size())]
    assert {m.appId(): m.version() for m in markers} == {"app 0": 4, "app 1": 3}
    assert [snapshot.transactions().get(m.appId()).get() for m in markers] == [
        m.version() for m in markers
    ]
