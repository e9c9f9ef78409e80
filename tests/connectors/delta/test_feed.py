"""The feed on real Delta tables: which changes become occurrences, in which bucket."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.support.capture import Capturing, needs, rows, total
from tests.support.lake import Lake
from tests.support.rulebooks import event, rulebook, table
from tidegate.connectors.delta.changes import decisions
from tidegate.connectors.delta.events import check_events
from tidegate.connectors.delta.feed import DeltaFeed
from tidegate.connectors.delta.log import LogFiles
from tidegate.connectors.delta.session import new_session
from tidegate.rules.errors import EngineError, InputError
from tidegate.rules.model import Start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("insert", "delete", "update", "change")


@pytest.mark.parametrize("vectors", [pytest.param("false", marks=pytest.mark.long), "true"])
def test_what_each_statement_raises(lake: Lake, vectors: str) -> None:
    """Insert, update, delete, merge with a no-op, optimize and overwrite, in a partitioned table
    with and without deletion vectors."""
    path = lake.create(
        "t", "id INT, kind STRING, n INT", "PARTITIONED BY (kind)", enableDeletionVectors=vectors
    )
    book = rulebook(
        tables=[table("t", path, key=("id",))], events=[event(k, "t", k) for k in KINDS]
    )
    loop = Capturing(book, needs(book, "id", "n"), DeltaFeed(lake.spark))
    loop.drain()

    lake.sql("INSERT INTO {t} VALUES (1, 'a', 10), (2, 'a', 20), (3, 'b', 30), (3, 'b', 30)")
    lake.sql("DELETE FROM {t} WHERE id = 3")
    first = loop.step()
    assert rows(first, "insert") == Counter({(1, 10): 1, (2, 20): 1, (3, 30): 2})
    assert rows(first, "delete") == Counter({(3, 30): 2})
    assert rows(first, "update") == Counter()
    assert rows(first, "change") == rows(first, "insert") + rows(first, "delete")

    lake.sql("UPDATE {t} SET n = 11 WHERE id = 1")
    lake.sql(
        "MERGE INTO {t} t USING (SELECT * FROM VALUES (1, 'a', 11), (2, 'a', 21), (4, 'c', 40) "
        "AS s(id, kind, n)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    lake.sql("OPTIMIZE {t}")
    second = loop.step()
    assert rows(second, "update") == Counter({(1, 11): 1, (2, 21): 1})  # 1 stays 11: no update
    assert rows(second, "insert") == Counter({(4, 40): 1})
    assert rows(second, "delete") == Counter()

    lake.sql("INSERT OVERWRITE {t} VALUES (2, 'a', 21), (5, 'b', 50)")
    third = loop.step()
    assert rows(third, "delete") == Counter({(1, 11): 1, (2, 21): 1, (4, 40): 1})
    assert rows(third, "insert") == Counter({(2, 21): 1, (5, 50): 1})
    assert loop.step() is None


def test_g09_where_reading_begins(lake: Lake) -> None:
    """`start:` on one table of four commits, the feed on from version 1 on."""
    lake.sql("CREATE TABLE {t} (id INT) USING delta")
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    for version in (2, 3):
        lake.sql(f"INSERT INTO {{t}} VALUES ({version})")
    hour = int(time.time()) // 3600 * 3600 - 4 * 3600
    for version in range(4):
        os.utime(lake.log("t", version), (hour + version, hour + version))

    def begin(start: Start) -> Capturing:
        book = rulebook(
            tables=[table("t", lake.path("t"), start=start)], events=[event("i", "t", "insert")]
        )
        return Capturing(book, needs(book, "id"), DeltaFeed(lake.spark))

    starts = {
        Start("earliest"): [2, 3],
        Start("version", 3): [3],
        Start("version", 4): [],
        Start("time", (hour + 2) * 1_000_000 + 1): [3],
        Start("time", (hour + 2) * 1_000_000): [2, 3],
        Start("snapshot"): [2, 3],
        Start("now"): [],
    }
    loops = {start: begin(start) for start in starts}
    for start, ids in starts.items():
        found = total(loops[start].drain(), "i")
        assert found == Counter((n,) for n in ids), start
        assert loops[start].state.cursors["t"].version == 3, start
    with pytest.raises(EngineError, match="off at version 0"):
        begin(Start("version", 0)).drain()

    updates = rulebook(
        tables=[table("t", lake.path("t"), start="snapshot", key=("id",))],
        events=[event("u", "t", "update")],
    )
    assert not total(Capturing(updates, needs(updates, "id"), DeltaFeed(lake.spark)).drain(), "u")

    snapshot = loops[Start("snapshot")]
    (first,) = snapshot.plans
    assert set(first.ranges[0].instants.values()) == {first.watermark_before + 2}
    lake.sql("INSERT INTO {t} VALUES (4)")
    for start in (Start("now"), Start("snapshot")):
        assert total(loops[start].drain(), "i") == Counter([(4,)])


def test_g01_instants_are_in_commit_timestamps_else_file_times(lake: Lake) -> None:
    lake.create("t", "id INT")
    lake.create("u", "id INT", enableInCommitTimestamps="false")
    hour = int(time.time()) // 3600 * 3600
    for name in "tu":
        lake.sql(f"INSERT INTO {{{name}}} VALUES (1)")
        os.utime(lake.log(name, 1), (hour, hour))
    tables = [table(name, lake.path(name)) for name in "tu"]
    feed = DeltaFeed(lake.spark)
    stamped, modified = (feed.head(t, None).commits[1].instant for t in tables)
    logged = json.loads(lake.log("t", 1).read_text().splitlines()[0])["commitInfo"]
    assert stamped == logged["inCommitTimestamp"] * 1000
    assert modified == hour * 1_000_000


def test_g14_a_commit_at_the_very_instant_is_part_of_what_stood_then(lake: Lake) -> None:
    path = lake.create("t", "id INT")
    for number in range(9):
        lake.append("t", (number,))
    source, feed = table("t", path), DeltaFeed(lake.spark)
    instants = [commit.instant for commit in feed.head(source, None).commits]
    assert len(instants) == 10
    for version, instant in enumerate(instants):
        asked = [feed.version_at(source, instant + more) for more in (-1, 0, 1)]
        assert asked == [version - 1 if version else None, version, version]


def test_g25_predicates_that_spark_decides(lake: Lake) -> None:
    """Beyond the closed list: over inserted rows, and over both images of updates; a row on which
    one raises is rejected and the others go on."""
    path = lake.create("t", "id INT, n INT, s STRING")
    events = [
        event("odd", "t", "insert", where="n % 2 = 1 AND length(s) = 1"),
        event("plain", "t", "insert", where="n >= 2"),
        event("raising", "t", "insert", where="10 / n > 4"),
        event("doubled", "t", "update", where="new.n = 2 * old.n"),
        event("ratio", "t", "update", where="new.n / old.n > 1"),
    ]
    book = rulebook(tables=[table("t", path, key=("id",))], events=events)
    loop = Capturing(book, needs(book, "id"), DeltaFeed(lake.spark))
    lake.sql("INSERT INTO {t} VALUES (1, 1, 'a'), (2, 0, 'b'), (3, 3, 'cc'), (4, NULL, 'd')")
    first = loop.step()
    assert first
    assert rows(first, "odd") == Counter([(1,)])
    assert rows(first, "plain") == Counter([(3,)])
    assert rows(first, "raising") == Counter([(1,)])
    (wrong,) = first.rejected
    assert (wrong.event, wrong.source, wrong.row["id"], wrong.row["n"]) == ("raising", "t@1", 2, 0)
    assert wrong.reason == "`where: 10 / n > 4` fails on this row"
    lake.sql("UPDATE {t} SET n = 2 * coalesce(n, 5)")
    second = loop.step()
    assert second
    assert rows(second, "doubled") == Counter([(1,), (3,)])  # 2 stays 0: no update
    assert rows(second, "ratio") == Counter([(1,), (3,)])


def test_g25_a_row_is_rejected_whatever_predicates_have_in_common(spark: SparkSession) -> None:
    """Spark evaluates a common part, or the first operand of BETWEEN, once for all of a text."""
    where = {
        "a": "cast(s AS int) > 1",
        "b": "cast(s AS int) > 1 AND cast(s AS int) < 3",
        "c": "cast(s AS int) + 1 BETWEEN 3 AND 4",
    }
    said = decisions(new_session(spark), pa.table({"s": ["1", "x", "2"]}), where)
    assert said.to_pydict() == {name: [False, None, True] for name in where}


def test_what_event_types_say_of_their_tables_is_checked(lake: Lake) -> None:
    path = lake.create("t", "id INT, name STRING")
    wheres = {
        "unknown": "upper(nome) = 'X'",
        "of_no_event": "old.id = upper(name)",
        "number": "length(name)",
        "clock": "name = cast(current_date() AS STRING)",
        "query": "id IN (SELECT 1)",
        "two": "id = 1; DROP TABLE t",
        "fast": "nome = 'X'",
        "good": "upper(name) LIKE 'X%'",
        "good_too": "name = 'X'",
    }
    events = [event(name, "t", "insert", where=text) for name, text in wheres.items()]
    events += [event("jumped", "k", "update", where="abs(new.id - old.id) > 1", of=("nam",))]
    tables = [table("t", path), table("k", path, key=("ident",))]
    with pytest.raises(InputError) as refused:
        check_events(lake.spark, rulebook(tables=tables, events=events), {"t": path, "k": path})
    found = {problem.place.path: problem for problem in refused.value.problems}
    assert set(found) == {
        *(f"events.{name}.where" for name in wheres if not name.startswith("good")),
        "events.jumped.of",
        "tables.k.key",
    }
    assert found["events.unknown.where"].message.startswith("[UNRESOLVED_COLUMN")
    assert "int, not boolean" in found["events.number.where"].message
    assert found["events.jumped.of"].hint == "did you mean 'name'?"


def test_g11_no_op_updates_are_told_by_every_column(lake: Lake) -> None:
    """A swap of a null and a value between columns is a change, in nested columns too; -0.0 for
    0.0 is none."""
    path = lake.create(
        "t",
        "id INT, a INT, b INT, f DOUBLE, s STRUCT<x: INT, y: INT>, l ARRAY<INT>, m MAP<INT, INT>",
    )
    book = rulebook(tables=[table("t", path, key=("id",))], events=[event("u", "t", "update")])
    loop = Capturing(book, needs(book, "id"), DeltaFeed(lake.spark))
    row = "NULL, 1, 0.0D, named_struct('x', NULL, 'y', 1), array(1, NULL), map(1, NULL)"
    lake.sql("INSERT INTO {t} VALUES " + ", ".join(f"({n}, {row})" for n in range(1, 7)))
    loop.drain()
    lake.sql(
        "MERGE INTO {t} t USING (SELECT explode(sequence(1, 6)) AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET "
        "a = IF(t.id = 2, 1, a), b = IF(t.id = 2, NULL, b), "
        "s = IF(t.id = 3, named_struct('x', 1, 'y', CAST(NULL AS INT)), t.s), "
        "l = IF(t.id = 4, array(NULL, 1), l), "
        "m = IF(t.id = 5, map(1, 1), m), "
        "f = IF(t.id = 6, -0.0D, f)"
    )
    assert rows(loop.step(), "u") == Counter([(2,), (3,), (4,), (5,)])


def test_g08_a_large_commit_goes_through_a_file(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapped: list[str] = []
    memory_map = pa.memory_map

    def map_counted(path: str) -> pa.MemoryMappedFile:
        mapped.append(path)
        return memory_map(path)

    monkeypatch.setattr(pa, "memory_map", map_counted)
    path = lake.create("t", "id BIGINT, s STRING")
    book = rulebook(
        tables=[table("t", path)], events=[event("i", "t", "insert")], bucket_rows_max=10
    )
    lake.sql("INSERT INTO {t} SELECT id, concat('row ', id) FROM range(0, 5000, 1, 4)")
    lake.sql("INSERT INTO {t} VALUES (-1, 'small')")
    spooling = Capturing(book, needs(book, "id", "s"), DeltaFeed(lake.spark, spool_rows=100))
    buckets = spooling.drain()
    assert [bucket.rows for bucket in buckets] == [5000, 1]
    assert len(mapped) == 1  # the small commit needs no file
    expected = Counter((n, f"row {n}") for n in range(5000)) + Counter([(-1, "small")])
    assert total(buckets, "i") == expected


def test_g02_a_listing_asks_the_file_system_for_what_is_new_only(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idle one costs one call a table, and no job."""
    calls: list[tuple[str, int]] = []
    names = ("exists", "modified_ms", "read", "names_from")
    asked = {name: getattr(LogFiles, name) for name in names}
    for name in asked:

        def counted(files: LogFiles, version: int, name: str = name) -> Any:
            calls.append((name, version))
            return asked[name](files, version)

        monkeypatch.setattr(LogFiles, name, counted)
    path = lake.create("t", "id INT")
    book = rulebook(tables=[table("t", path)], events=[event("i", "t", "insert")])
    loop = Capturing(book, needs(book, "id"), DeltaFeed(lake.spark))
    loop.drain()
    tracker = lake.spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup(None))
    calls.clear()
    for _ in range(20):
        assert loop.step() is None
    assert calls == [("exists", 1)] * 20
    assert len(tracker.getJobIdsForGroup(None)) == before

    for n in (1, 2):
        lake.append("t", (n,))
    calls.clear()
    assert [commit.version for commit in loop.listing(0).heads["t"].commits] == [1, 2]
    assert calls.count(("modified_ms", 0)) == 1  # the cursor's file tells which table it is
    assert [version for name, version in calls if name == "read"] == [1, 2]
    calls.clear()
    assert [commit.version for commit in loop.listing(0).heads["t"].commits] == [1, 2]
    assert calls == [("exists", 3)]

    monkeypatch.setattr("tidegate.connectors.delta.feed._COMMITS_MAX", 1)
    calls.clear()
    for _ in range(3):
        assert loop.listing(0).heads["t"].left_out
    assert calls == []  # more are known than a plan can take


def test_g01_times_of_object_stores_are_coarse(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = table("t", lake.create("t", "id INT", enableInCommitTimestamps="false"))
    stamped = table("u", lake.create("u", "id INT"))
    for scheme in ("file", "hdfs", "s3a", "gs", "wasb", "wasbs", "abfs", "abfss"):
        monkeypatch.setattr(LogFiles, "scheme", scheme)
        feed = DeltaFeed(lake.spark)
        assert feed.head(plain, None).coarse_times == (scheme not in ("file", "hdfs"))
        assert not feed.head(stamped, None).coarse_times


@pytest.mark.long
def test_what_the_engine_relies_on_in_the_feed(lake: Lake) -> None:
    """Facts of the feed: both ends inclusive, an end past the latest clamped, its time not always
    the commit file's."""
    lake.create("t", "id INT", enableInCommitTimestamps="false")
    for version in (1, 2, 3):
        lake.sql(f"INSERT INTO {{t}} VALUES ({version})")

    hour = int(time.time()) // 3600 * 3600
    for version in range(4):
        os.utime(lake.log("t", version), (hour - version, hour - version))
    lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]

    def feed(first: int, last: int) -> list[tuple[int, int, int]]:
        reader = lake.spark.read.format("delta").option("readChangeFeed", "true")
        found = reader.option("startingVersion", first).option("endingVersion", last)
        times = found.load(lake.path("t")).selectExpr(
            "id", "_commit_version", f"unix_millis(_commit_timestamp) - {hour * 1000}"
        )
        return sorted((row[0], row[1], row[2]) for row in times.collect())

    # The times are the commit files', made ascending from the log's beginning.
    assert feed(1, 2) == [(1, 1, 1), (2, 2, 2)]
    assert feed(2, 9) == [(2, 2, 2), (3, 3, 3)]
