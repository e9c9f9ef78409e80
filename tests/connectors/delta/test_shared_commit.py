"""Several INSERTs in one commit: each has its marker, its note and its count (G16)."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.sql import Observation

from tests.connectors.delta.test_reading_markers import TABLES, actions
from tests.connectors.delta.test_sink import FIRED, FIRST, ZERO, Bank
from tests.support.lake import Lake
from tests.support.make import entry as made_entry
from tests.support.table import rows_of
from tidegate.connectors.delta import sink as sink_module
from tidegate.connectors.delta.catalog import latest_snapshot
from tidegate.connectors.delta.plans import Plans
from tidegate.connectors.delta.session import new_session
from tidegate.connectors.delta.shared_commit import Insert, _count, insert_of, run_shared
from tidegate.engine.core.entries import Entry, Fate
from tidegate.engine.core.ports import SinkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SLEEP_MS, SLEEPS_MAX = 50, 1_200


@pytest.fixture(scope="module")
def bank(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    lake = Lake(spark, tmp_path_factory.mktemp("shared"))
    lake.create("accounts", "account BIGINT, balance DOUBLE")
    lake.create("alerts", "account BIGINT, text STRING")
    bank = Bank(lake)
    yield bank
    bank.catalog.close()


def together(bank: Bank, *texts: str, rule: str = "", **more: Any) -> list[Entry]:
    """Entries of one rule, or of rules of their own."""
    return [
        bank.entry(text, rule=rule or f"shared{number}", **more)
        for number, text in enumerate(texts)
    ]


def inserts(spark: SparkSession, table: str, *queries: str) -> list[Insert]:
    """Entries 1, 2, .. of rules of their own, each an INSERT of a query."""
    found = []
    for number, query in enumerate(queries, 1):
        session = new_session(spark)
        entry = made_entry("r", number=number, app_id=f"app {number}")
        parsed = Plans(session).statement(f"INSERT INTO delta.`{table}` {query}")
        found.append(insert_of(session, entry, parsed, marker=0))
    return [one for one in found if one is not None]


def test_g16_inserts_share_a_commit_and_each_has_its_marker_and_its_note(bank: Bank) -> None:
    entries = together(
        bank,
        "INSERT INTO alerts SELECT account, 'shared 0' FROM event",
        "INSERT INTO alerts (text, account) SELECT 'shared 1', 1",
        "INSERT INTO alerts SELECT CAST(n AS INT), 'shared 2' FROM VALUES (1), (2) AS v(n)",
        "INSERT INTO alerts (account) SELECT 3",  # writes other columns, and is left out
    )
    before = bank.versions("alerts")
    bank.sink.run_together([(entry, FIRED) for entry in entries])
    assert bank.versions("alerts") == before + 1
    fates = [bank.sink.fate(entry, FIRED) for entry in entries]
    assert fates == [Fate.EFFECT] * 3 + [Fate.ABSENT]
    assert [bank.sink.effect(entry) for entry in entries] == [
        (before, 3), (before, 1), (before, 2), None,
    ]  # fmt: skip
    rows = [row for row in bank.rows("alerts") if str(row[1]).startswith("shared")]
    assert rows == [
        (1, "shared 1"), (1, "shared 2"), (2, "shared 2"),
        (7, "shared 0"), (7, "shared 0"), (8, "shared 0"),
    ]  # fmt: skip
    log = bank.lake.log("alerts", before).read_text().splitlines()
    marked = [json.loads(line)["txn"] for line in log if '"txn"' in line]
    assert {m["appId"]: m["version"] for m in marked} == {e.app_id: e.number for e in entries[:3]}
    for entry in entries[:3]:
        bank.sink.run(entry, FIRED)  # skipped
    bank.sink.run_together([(entries[3], FIRED)])  # alone: nothing to share
    assert bank.versions("alerts") == before + 1
    bank.sink.run(entries[3], FIRED)
    assert bank.sink.fate(entries[3], FIRED) is Fate.EFFECT


def test_g16_entries_of_one_rule_share_a_commit_under_its_greatest_number(bank: Bank) -> None:
    text = "INSERT INTO alerts SELECT :account, 'each'"
    entries = together(bank, *[text] * 3, rule="each", firing_ids=(ZERO,))
    before = bank.versions("alerts")
    bank.sink.run_together([(entry, FIRST) for entry in reversed(entries)])
    assert {bank.sink.fate(entry, FIRST) for entry in entries} == {Fate.EFFECT}
    log = bank.lake.log("alerts", before).read_text().splitlines()
    [marked] = [json.loads(line)["txn"] for line in log if '"txn"' in line]
    assert (marked["appId"], marked["version"]) == (entries[0].app_id, entries[-1].number)
    bank.sink.run_together([(entry, FIRST) for entry in entries])  # all are left out
    assert bank.versions("alerts") == before + 1


def test_g16_what_is_left_out_is_not_passed_over_by_a_greater_marker_of_its_rule(
    bank: Bank,
) -> None:
    """One rule inserts other columns in between: its second entry lands, and so does its third."""
    one = "INSERT INTO alerts SELECT 1, 'between'"
    other = "INSERT INTO alerts (account) SELECT 42"
    entries = together(bank, one, one, other, one, rule="between")
    bank.sink.run_together([(entry, FIRED) for entry in entries])
    assert [bank.sink.fate(entry, FIRED) for entry in entries] == [
        Fate.EFFECT, Fate.EFFECT, Fate.ABSENT, Fate.ABSENT,
    ]  # fmt: skip
    for entry in entries[2:]:
        bank.sink.run(entry, FIRED)
        assert bank.sink.fate(entry, FIRED) is Fate.EFFECT
    rows = Counter(map(tuple, bank.rows("alerts")))
    assert (rows[1, "between"], rows[42, None]) == (3, 1)


@pytest.mark.parametrize("seen", [pytest.param(0, marks=pytest.mark.long), 3])
def test_g16b_a_marker_that_was_moved_after_it_was_looked_at_ends_a_shared_commit(
    lake: Lake, spark: SparkSession, seen: int
) -> None:
    """By an engine on a copy of the store, to a number that is still below the entry's."""
    lake.create("t", "id BIGINT")
    first, other = inserts(spark, lake.path("t"), "SELECT 8L", "SELECT 9L")
    first = replace(first, marker=seen, entry=replace(first.entry, number=7))
    session = new_session(spark)
    session.conf.set("spark.databricks.delta.write.txnAppId", first.entry.app_id)
    session.conf.set("spark.databricks.delta.write.txnVersion", "4")
    session.sql(f"INSERT INTO delta.`{lake.path('t')}` VALUES (4)")
    with pytest.raises(Exception, match="IllegalStateException"):
        run_shared(new_session(spark), [first, other])
    assert run_shared(new_session(spark), [replace(first, marker=4), other]) == {7: 1, 2: 1}
    assert sorted(rows_of(lake.folder / "t")) == [(4,), (8,), (9,)]


def test_g18_what_follows_a_redriven_entry_does_not_land_before_it(bank: Bank) -> None:
    """It has the greatest number, an app id of its own, and its rule's first place. Its present
    text writes other columns than those of the entries after it."""
    one = "INSERT INTO alerts SELECT 1, 'after'"
    place, *later = together(bank, one, one, one, rule="again")
    [redriven] = together(
        bank,
        "INSERT INTO alerts (account) SELECT 43",
        rule="again",
        app_id=f"{place.app_id}/redrive/{place.number}/0",
        place=place.number,
    )
    later = [replace(e, turn=replace(e.turn, place=e.number)) for e in later]
    [other] = together(bank, "INSERT INTO alerts (account) SELECT 44")
    before = bank.versions("alerts")
    bank.sink.run_together([(entry, FIRED) for entry in (redriven, *later, other)])
    assert bank.versions("alerts") == before + 1
    assert [bank.sink.fate(entry, FIRED) for entry in (redriven, *later, other)] == [
        Fate.EFFECT, Fate.ABSENT, Fate.ABSENT, Fate.EFFECT,
    ]  # fmt: skip


def test_g16_what_would_be_no_small_job_runs_alone(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of all that share a commit are in memory at the same time."""
    monkeypatch.setattr(sink_module, "SMALL_SOURCE_ROWS", 2 * FIRED.relation.num_rows)
    entries = together(bank, *["INSERT INTO alerts VALUES (61, 'many')"] * 3)
    before = bank.versions("alerts")
    bank.sink.run_together([(entry, FIRED) for entry in entries])
    assert bank.versions("alerts") == before + 1
    fates = [bank.sink.fate(entry, FIRED) for entry in entries]
    assert fates == [Fate.EFFECT, Fate.EFFECT, Fate.ABSENT]


def test_g16_what_reads_a_relation_sees_what_its_rule_wrote_before(bank: Bank) -> None:
    first, second, third = together(
        bank,
        "INSERT INTO alerts VALUES (51, 'seen')",
        "INSERT INTO alerts SELECT count(*), 'saw' FROM alerts WHERE account = 51",
        "INSERT INTO alerts VALUES (52, 'seen')",
        rule="sees",
    )
    [other] = together(bank, "INSERT INTO alerts VALUES (53, 'seen')")
    entries = (first, second, third, other)
    bank.sink.run_together([(entry, FIRED) for entry in entries])
    assert [bank.sink.fate(entry, FIRED) for entry in entries] == [
        Fate.EFFECT, Fate.ABSENT, Fate.ABSENT, Fate.EFFECT,
    ]  # fmt: skip
    bank.sink.run(second, FIRED)
    assert (1, "saw") in bank.rows("alerts")


def test_g16_who_writes_the_fields_of_a_struct_in_another_order_does_not_share(
    lake: Lake, spark: SparkSession
) -> None:
    """An INSERT takes them by name, and a union by place: it would exchange their values."""
    lake.create("t", "s STRUCT<a: BIGINT, b: BIGINT>, n ARRAY<STRUCT<a: BIGINT, b: BIGINT>>")
    ab, ba = "named_struct('a', 1L, 'b', 2L)", "named_struct('b', 2L, 'a', 1L)"
    one, nested, inner = inserts(
        spark,
        lake.path("t"),
        f"SELECT {ab} AS s, array({ab}) AS n",
        f"SELECT {ba} AS s, array({ab}) AS n",
        f"SELECT {ab} AS s, array({ba}) AS n",
    )
    assert one.columns != nested.columns
    assert one.columns != inner.columns


def test_g16_an_insert_with_options_of_its_own_does_not_share(
    lake: Lake, spark: SparkSession
) -> None:
    """They would be those of all, or of none."""
    lake.create("t", "id BIGINT")
    with_options = "WITH (mergeSchema = 'true') SELECT 1L AS id"
    assert [i.entry.number for i in inserts(spark, lake.path("t"), with_options, "SELECT 2L")] == [
        2
    ]


class Late:
    """An observation that Spark completes after it was asked three times."""

    def __init__(self) -> None:
        self._jo = self
        self.asked = 0

    def future(self) -> Late:
        return self

    def isCompleted(self) -> bool:
        self.asked += 1
        return self.asked > 3

    def getRow(self) -> Late:
        return self

    def getLong(self, at: int) -> int:
        return 5 + at


def test_a_count_that_comes_late_is_waited_for_but_not_for_ever() -> None:
    assert _count(cast(Observation, Late()), time.monotonic() + 60) == 5
    assert _count(cast(Observation, Late()), time.monotonic() - 1) is None


def test_g16_of_shared_inserts_one_that_fails_leaves_nothing_of_the_others(bank: Bank) -> None:
    good, bad = together(
        bank,
        "INSERT INTO alerts SELECT 1, 'half'",
        "INSERT INTO alerts SELECT 1 / (account - 7), 'half' FROM event",
    )
    before = bank.versions("alerts")
    with pytest.raises(SinkError, match="DIVIDE_BY_ZERO"):
        bank.sink.run_together([(good, FIRED), (bad, FIRED)])
    assert bank.versions("alerts") == before
    assert {bank.sink.fate(entry, FIRED) for entry in (good, bad)} == {Fate.ABSENT}
    bank.sink.run(good, FIRED)
    assert bank.sink.fate(good, FIRED) is Fate.EFFECT


def test_g16b_one_that_another_history_has_passed_does_not_share(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of an engine on a copy of the store; its own entry is left alone then."""
    theirs, copied, *ours = together(bank, *["INSERT INTO alerts SELECT 1, 'copied'"] * 4)
    copied = replace(copied, app_id=theirs.app_id)
    bank.sink.run(theirs, FIRED)
    monkeypatch.setitem(bank.app_ids, theirs.number, "tidegate/S7/bank/another")
    before = bank.versions("alerts")
    bank.sink.run_together([(entry, FIRED) for entry in (copied, *ours)])
    assert bank.versions("alerts") == before + 1
    assert [bank.sink.fate(entry, FIRED) for entry in ours] == [Fate.EFFECT] * 2
    later = replace(copied, target_version=before)
    assert bank.sink.fate(later, FIRED) is Fate.PASSED


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(TABLES))
def test_g16_tables_of_every_feature_take_shared_rows_as_they_take_others(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """Side by side: two INSERTs in one commit, and one INSERT of the rows of both."""
    lake = Lake(spark, tmp_path)
    columns, more, between = TABLES[name]
    for table in ("shared", "alone"):
        lake.sql(f"CREATE TABLE {{{table}}} ({columns}) USING delta {more}")
        lake.sql(f"INSERT INTO {{{table}}} (id) VALUES (0)")
        for statement in between:
            lake.sql(statement.replace("{t}", f"{{{table}}}"))
    values = ("VALUES (1), (2)", "SELECT id + 3 FROM range(3)")
    alone = f"INSERT INTO delta.`{lake.path('alone')}` (id)"
    new_session(spark).sql(f"{alone} {' UNION ALL '.join(values)}")
    before = latest_snapshot(spark, lake.path("shared")).version()
    given = inserts(spark, lake.path("shared"), *(f"(id) {query}" for query in values))
    counts = run_shared(new_session(spark), given)
    assert counts == {1: 2, 2: 3}
    snapshot = latest_snapshot(spark, lake.path("shared"))
    assert snapshot.version() == before + 1
    assert actions(lake.log("shared", before + 1)) == actions(lake.log("alone", before + 1))
    assert [snapshot.transactions().get(f"app {n}").get() for n in (1, 2)] == [1, 2]
    shared, alone = (
        spark.sql(f"SELECT * FROM delta.`{lake.path(t)}`") for t in ("shared", "alone")
    )
    assert shared.schema == alone.schema
    if name == "identity":  # which numbers, is Delta's own affair
        assert shared.select("n").distinct().count() == shared.count() == alone.count()
        shared, alone = shared.drop("n"), alone.drop("n")
    assert Counter(shared.collect()) == Counter(alone.collect())


HELD = """
    SELECT length(coalesce(
        nullif(java_method('java.lang.System', 'setProperty', '{gate}', 'asked'), 'asked'),
        if(
            java_method('java.lang.System', 'getProperty', '{gate}.free') = 'yes',
            '', java_method('java.lang.Thread', 'sleep', {ms}L)
        ))) * 0L
    FROM range(0, {rows}, 1, 1)
"""


@pytest.mark.parametrize(
    ("meanwhile", "conflict"),
    [
        pytest.param("INSERT INTO {t} VALUES (7)", "", marks=pytest.mark.long),
        pytest.param("UPDATE {t} SET id = id + 1", "", marks=pytest.mark.long),
        ("MARKED", "DELTA_CONCURRENT_TRANSACTION"),
        pytest.param(
            "ALTER TABLE {t} ADD COLUMN more BIGINT",
            "DELTA_METADATA_CHANGED",
            marks=pytest.mark.long,
        ),
    ],
)
def test_g16_another_writer_while_a_shared_commit_is_under_way(
    lake: Lake, spark: SparkSession, meanwhile: str, conflict: str
) -> None:
    """Rows of others do not matter; a marker of one of its entries, or another schema, ends it
    whole. The other writer commits while the rows are written: each of them sleeps until then."""
    lake.create("t", "id BIGINT")
    lake.sql("INSERT INTO {t} VALUES (0)")
    properties: Any = spark._jvm.java.lang.System  # type: ignore[union-attr]
    gate = lake.path("t")
    query = HELD.format(gate=gate, ms=SLEEP_MS, rows=SLEEPS_MAX)
    given = inserts(spark, lake.path("t"), query, "SELECT 3L")
    with ThreadPoolExecutor(1) as other:
        running = other.submit(run_shared, new_session(spark), given)
        while properties.getProperty(gate) is None:
            assert not running.done()
            time.sleep(0.05)
        session = new_session(spark)
        if meanwhile == "MARKED":
            session.conf.set("spark.databricks.delta.write.txnAppId", "app 2")
            session.conf.set("spark.databricks.delta.write.txnVersion", "2")
        text = "INSERT INTO {t} VALUES (3)" if meanwhile == "MARKED" else meanwhile
        session.sql(text.replace("{t}", f"delta.`{lake.path('t')}`"))
        assert not running.done()
        properties.setProperty(f"{gate}.free", "yes")
        if conflict:
            with pytest.raises(Exception, match=conflict):
                running.result()
        else:
            assert running.result() == {1: SLEEPS_MAX, 2: 1}
    rows = [row[0] for row in rows_of(lake.folder / "t")]
    assert rows.count(3) == ("ALTER" not in meanwhile)
    marked = latest_snapshot(spark, lake.path("t")).transactions().get("app 1")
    assert marked.isDefined() is not bool(conflict)


@pytest.mark.long
def test_g16_what_delta_does_after_a_shared_commit_has_none_of_its_markers(
    lake: Lake, spark: SparkSession
) -> None:
    """Delta compacts the table within the statement, by a transaction of its own."""
    lake.create("t", "id BIGINT", autoOptimize__autoCompact="true")
    for n in range(3):
        lake.sql(f"INSERT INTO {{t}} VALUES ({n})")
    before = latest_snapshot(spark, lake.path("t")).version()
    session = new_session(spark)
    session.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "2")
    assert run_shared(session, inserts(spark, lake.path("t"), "SELECT 8L", "SELECT 9L")) == {
        1: 1, 2: 1,
    }  # fmt: skip
    assert latest_snapshot(spark, lake.path("t")).version() == before + 2
    first, second = (lake.log("t", before + n).read_text() for n in (1, 2))
    assert ('"txn"' in first, '"txn"' in second) == (True, False)
    assert '"operation":"OPTIMIZE"' in second
