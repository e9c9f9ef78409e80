"""Conditions and actions on real tables: once, in their own sessions, at the right versions."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.support.lake import Lake, jobs_so_far
from tests.support.make import altered
from tests.support.make import entry as made_entry
from tests.support.table import rows_of
from tidegate.connectors.delta.analyst import DeltaAnalyst
from tidegate.connectors.delta.catalog import Catalog
from tidegate.connectors.delta.conditions import DeltaConditions
from tidegate.connectors.delta.sink import DeltaSink
from tidegate.engine.core.entries import Entry, Fate
from tidegate.engine.core.policy import UNMARKED
from tidegate.engine.core.ports import SinkError
from tidegate.engine.core.statement import SignalStatement
from tidegate.engine.core.text.logs import ASKING, begin, stage_of
from tidegate.engine.core.values import Failure, Firings, Question
from tidegate.rules.errors import InputError, Place
from tidegate.rules.model import Condition, Rulebook, Settings, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Place("bank.yaml", 3, 5)
INSTANT = pa.timestamp("us", "UTC")
ZERO, ONE = "00" * 16, "11" * 16


class Bank:
    """A catalog over two tables, and what runs on it."""

    def __init__(self, lake: Lake, store: str = "S7") -> None:
        self.lake, self.store = lake, store
        names = ("accounts", "alerts")
        tables = {name: Table(name, HERE, path=lake.path(name)) for name in names}
        self.book = Rulebook("bank", None, "", "UTC", tables, {}, {})
        self.catalog = Catalog(lake.spark, self.book, store)
        self.catalog.open()
        analyst = DeltaAnalyst(self.catalog, self.book, unmarked=UNMARKED)
        self.app_ids: dict[int, str] = {}  # that the store knows, by number
        self.sink = DeltaSink(self.catalog, self.book, analyst, lambda _: self.app_ids)
        self.conditions = DeltaConditions(self.catalog, 3_600)
        self.numbers = iter(range(1, 1000))

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        return sorted(rows_of(self.lake.folder / table))

    def versions(self, table: str) -> int:
        return len(list(Path(self.lake.path(table), "_delta_log").glob("*.json")))

    def entry(
        self, text: str, target: str | None = "alerts", rule: str = "r", **more: Any
    ) -> Entry:
        number = next(self.numbers)
        before = self.versions(target) - 1 if target else None
        known = {"app_id": f"tidegate/{self.store}/bank/{rule}", "target_version": before, **more}
        of = {"text": text, "target": target, "order": number, "number": number, "bucket": 1}
        return made_entry(rule, **{**of, **known})


@pytest.fixture(scope="module")
def bank(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    lake = Lake(spark, tmp_path_factory.mktemp("it's a lake"))
    lake.create("accounts", "account BIGINT, balance DOUBLE")
    lake.create("alerts", "account BIGINT, text STRING")
    lake.append("accounts", (7, 100.0), (8, 50.0))
    bank = Bank(lake)
    yield bank
    bank.catalog.close()


def instants(*times: int) -> pa.Array:
    return pa.array(times, INSTANT)


FIRED = Firings(
    "r",
    pa.table(
        {
            "firing_id": pa.array([b"\x00" * 16, b"\x11" * 16], pa.binary(16)),
            "account": pa.array([7, 8], pa.int64()),
            "started_at": instants(1, 3),
            "detected_at": instants(2, 3),
            "depth": pa.array([1, 1], pa.int32()),
            "condition": ["held", "held"],
            "constituents": pa.array([2, 1], pa.int32()),
        }
    ),
    pa.table(
        {
            "firing_id": [ZERO, ZERO, ONE],
            "event_type": ["w", "w", "w"],
            "started_at": instants(1, 1, 3),
            "detected_at": instants(2, 2, 3),
            "account": pa.array([7, 7, 8], pa.int64()),
            "amount": [60.0, 70.0, 5.0],
        }
    ),
)
FIRST = Firings("r", FIRED.firings[:1], FIRED.relation[:2])
MERGE = (
    "MERGE INTO accounts a"
    " USING (SELECT account, sum(amount) AS amount FROM event GROUP BY account) e"
    " ON a.account = e.account WHEN MATCHED THEN UPDATE SET balance = a.balance - e.amount"
)


def _repeated(table: pa.Table, count: int) -> pa.Table:
    """`count` rows like the first, each of a firing of its own."""
    ids = [number.to_bytes(16, "big") for number in range(count)]
    if pa.types.is_string(table["firing_id"].type):
        ids = [one.hex() for one in ids]
    rows = pa.concat_tables([table[:1]] * count)
    return rows.set_column(0, "firing_id", pa.array(ids, table["firing_id"].type))


def test_g16_an_entry_run_twice_has_one_effect(bank: Bank) -> None:
    merge = bank.entry(MERGE, "accounts")
    before = dict(bank.rows("accounts"))
    assert bank.sink.fate(merge, FIRED) is Fate.ABSENT
    for _ in range(2):
        bank.sink.run(merge, FIRED)
        assert bank.sink.fate(merge, FIRED) is Fate.EFFECT
        assert dict(bank.rows("accounts")) == {7: before[7] - 130, 8: before[8] - 5}


@pytest.mark.long
def test_g16_only_a_target_whose_rows_are_looked_for_is_built_from_its_log(bank: Bank) -> None:
    """A marked INSERT takes the jobs of a plain one; a MERGE finds its target's state ready."""

    def jobs(call: Callable[[], object]) -> int:
        before = jobs_so_far(bank.lake.spark)
        call()
        return jobs_so_far(bank.lake.spark) - before

    first, second = (bank.entry(f"INSERT INTO alerts SELECT {n}, 'job'") for n in (1, 2))
    bank.sink.run(first, FIRED)
    bank.sink.run(bank.entry(MERGE, "accounts"), FIRED)
    plain = jobs(lambda: bank.lake.sql("INSERT INTO {alerts} SELECT 3, 'job'"))
    assert jobs(lambda: bank.sink.run(second, FIRED)) == plain
    assert jobs(lambda: bank.sink.ready(["alerts"])) == 0
    assert jobs(lambda: bank.sink.ready(["accounts"])) > 0
    assert jobs(lambda: bank.sink.ready(["accounts"])) == 0


@pytest.mark.long
def test_g16_two_statements_of_a_rule_on_one_table_both_land(bank: Bank) -> None:
    first, second = (bank.entry(f"INSERT INTO alerts SELECT {n}, 'two'") for n in (1, 2))
    for entry in (first, second, first, second):
        bank.sink.run(entry, FIRED)
    assert [row for row in bank.rows("alerts") if row[1] == "two"] == [(1, "two"), (2, "two")]


def test_g16_the_commit_says_whose_effect_it_is(bank: Bank) -> None:
    entry = bank.entry("INSERT INTO alerts SELECT account, 'said' FROM p_r", depth=3)
    bank.sink.run(entry, FIRED)
    log = bank.lake.log("alerts", bank.versions("alerts") - 1).read_text().splitlines()
    actions = {key: value for line in log for key, value in json.loads(line).items()}
    said = actions["commitInfo"]["userMetadata"]
    assert said.startswith(f'{{"why": "tidegate why {ZERO} # the first of 2 firings"')
    assert json.loads(said) == {
        "why": f"tidegate why {ZERO} # the first of 2 firings",
        "tidegate": {
            "store": "S7",
            "rulebook": "bank",
            "rule": "r",
            "entry": entry.number,
            "app_id": "tidegate/S7/bank/r",
            "action": 0,
            "depth": 3,
            "firings": 2,
            "ids": [ZERO, ONE],
        },
    }
    assert actions["txn"]["appId"] == "tidegate/S7/bank/r"
    assert actions["txn"]["version"] == entry.number
    assert bank.sink.effect(entry) is None  # its fate was not asked
    assert bank.sink.fate(entry, FIRED) is Fate.EFFECT
    assert bank.sink.effect(entry) == (bank.versions("alerts") - 1, 3)
    assert bank.sink.effect(entry) is None


@pytest.mark.long
def test_the_history_of_a_target_names_the_command_that_explains_it(bank: Bank) -> None:
    entry = bank.entry("INSERT INTO alerts SELECT :account, 'one'", firing_ids=(ZERO,))
    bank.sink.run(entry, FIRST)
    path = bank.lake.path("alerts")
    history = bank.lake.spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1")
    assert json.loads(history.collect()[0].userMetadata)["why"] == f"tidegate why {ZERO}"
    bank.sink.seal(bank.entry("INSERT INTO alerts SELECT 1, 'sealed'"))
    sealed = bank.lake.spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").collect()[0]
    assert json.loads(sealed.userMetadata).keys() == {"tidegate"}


def test_g16b_a_marker_that_another_history_moved_keeps_a_statement_from_running(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an engine on a copy of the store does, under a number that is another rule's here."""
    app_id = "tidegate/S7/bank/copied"
    theirs, ours = (
        bank.entry("INSERT INTO alerts SELECT 1, 'copied'", app_id=app_id) for _ in range(2)
    )
    bank.sink.run(theirs, FIRED)
    later = replace(ours, target_version=bank.versions("alerts") - 1)  # stored after that
    assert bank.sink.fate(later, FIRED) is Fate.ABSENT
    monkeypatch.setitem(bank.app_ids, theirs.number, "tidegate/S7/bank/another")
    for entry in (ours, later):
        before = bank.versions("alerts")
        bank.sink.run(entry, FIRED)
        assert bank.versions("alerts") == before
        assert bank.sink.fate(entry, FIRED) is Fate.PASSED
    monkeypatch.setitem(bank.app_ids, theirs.number, app_id)
    bank.sink.run(later, FIRED)
    assert bank.sink.fate(later, FIRED) is Fate.EFFECT


def test_g16b_an_action_is_not_taken_for_another_of_its_rule(bank: Bank) -> None:
    """Of two copies of a store, each may have given its number to another one."""
    entry = bank.entry("INSERT INTO alerts SELECT 2, 'copied'")
    bank.sink.run(entry, FIRED)
    assert bank.sink.fate(altered(entry, action=1), FIRED) is Fate.PASSED
    assert bank.sink.fate(entry, FIRED) is Fate.EFFECT


def test_g16_no_marker_leaks_into_other_sessions(bank: Bank, spark: SparkSession) -> None:
    bank.sink.run(bank.entry("INSERT INTO alerts SELECT 1, 'leak'"), FIRED)
    assert spark.conf.get("spark.databricks.delta.write.txnAppId", None) is None
    assert spark.conf.get("spark.databricks.delta.commitInfo.userMetadata", None) is None
    assert "event" not in [view.name for view in spark.catalog.listTables()]


def test_the_users_session_stays_the_active_one(bank: Bank, spark: SparkSession) -> None:
    spark.createDataFrame([(1,)], "id INT")  # which makes it the active one
    bank.sink.run(bank.entry("INSERT INTO alerts SELECT 1, 'active'"), FIRED)
    assert type(spark).getActiveSession() is spark
    jvm: Any = spark._jvm
    assert jvm.org.apache.spark.sql.SparkSession.active().equals(spark._jsparkSession)


def test_a_statement_for_one_firing_has_its_values_as_parameters(bank: Bank) -> None:
    text = (
        "INSERT INTO alerts SELECT :account * 1000000000, concat_ws(' ', typeof(:account),"
        " :firing_id, unix_micros(:detected_at), count(*)) FROM event"
    )
    bank.sink.run(bank.entry(text, firing_ids=(ZERO,)), FIRST)
    assert (7_000_000_000, f"bigint {ZERO} 2 2") in bank.rows("alerts")


def test_a_failing_statement_says_why_and_leaves_nothing(bank: Bank) -> None:
    before = bank.versions("alerts")
    for text, said in {
        "INSERT INTO alerts SELECT 1 / (account - 7), 'x' FROM event": r"^\[DIVIDE_BY_ZERO\]",
        "INSERT INTO alerts SELECT cast(event_type AS INT), 'x' FROM event": "CAST_INVALID_INPUT",
        "INSERT INTO alerts SELECT nope, 'x' FROM event": r"\[sql-analysis\].*nope",
        "INSERT INTO elsewhere SELECT 1": r"\[sql-target\] elsewhere is not a declared table",
    }.items():
        with pytest.raises(SinkError, match=said) as failed:
            bank.sink.run(bank.entry(text), FIRED)
        assert "\n" not in str(failed.value)
    assert bank.versions("alerts") == before


def test_g16b_an_entry_behind_its_rules_marker_is_skipped_and_not_called_done(bank: Bank) -> None:
    """The reason that the entries of a rule run in order, one at a time."""
    late = bank.entry("INSERT INTO alerts SELECT 1, 'late'")
    early = bank.entry("INSERT INTO alerts SELECT 2, 'early'")
    bank.sink.run(early, FIRED)
    bank.sink.run(late, FIRED)
    assert bank.sink.fate(late, FIRED) is Fate.PASSED
    assert [text for _, text in bank.rows("alerts") if text in ("late", "early")] == ["early"]


@pytest.mark.long
def test_g16b_the_fate_is_read_from_the_version_that_the_entry_was_stored_with(bank: Bank) -> None:
    """Other writers commit before and after; a commit of the same number for other firings is
    another history's."""
    entry = bank.entry("INSERT INTO alerts SELECT 1, 'fated'")
    bank.lake.sql("INSERT INTO {alerts} VALUES (1, 'other')")
    bank.sink.run(entry, FIRED)
    bank.lake.sql("INSERT INTO {alerts} VALUES (2, 'other')")
    assert bank.sink.fate(entry, FIRED) is Fate.EFFECT
    assert bank.sink.fate(entry, FIRST) is Fate.PASSED
    too_late = replace(entry, target_version=bank.versions("alerts") - 1)
    assert bank.sink.fate(too_late, FIRED) is Fate.UNKNOWN
    assert bank.sink.fate(replace(entry, number=entry.number + 1), FIRED) is Fate.ABSENT


def test_g16b_a_commit_for_more_firings_is_not_one_for_the_first_of_them(bank: Bank) -> None:
    """A commit names its first firings only; two histories with one id, as a copy of a store makes,
    may have cut their buckets at different places."""
    many = Firings("r", *(_repeated(table, 130) for table in (FIRST.firings, FIRST.relation)))
    fewer = Firings("r", many.firings[:120], many.relation[:120])
    entry = bank.entry("INSERT INTO alerts SELECT 1, 'many'")
    bank.sink.run(entry, many)
    assert bank.sink.fate(entry, many) is Fate.EFFECT
    assert bank.sink.fate(entry, fewer) is Fate.PASSED


@pytest.mark.long
def test_g16b_a_cleaned_log_and_a_target_that_is_gone_leave_the_fate_unknown(lake: Lake) -> None:
    lake.create("accounts", "account BIGINT, balance DOUBLE")
    lake.create("alerts", "account BIGINT, text STRING")
    bank = Bank(lake, "S8")
    entry = bank.entry("INSERT INTO alerts SELECT 1, 'cleaned'")
    for text in ("next", "later"):
        bank.sink.run(bank.entry(f"INSERT INTO alerts SELECT 1, '{text}'"), FIRED)
    lake.log("alerts", 1).unlink()
    assert bank.sink.fate(entry, FIRED) is Fate.UNKNOWN  # whose the missing commit is, none knows
    shutil.rmtree(lake.path("alerts"))
    assert bank.sink.fate(entry, FIRED) is Fate.UNKNOWN
    with pytest.raises(SinkError):
        bank.sink.seal(entry)
    bank.catalog.close()


@pytest.mark.long
def test_g16b_the_log_of_a_target_that_was_made_anew_is_read_anew(lake: Lake) -> None:
    lake.create("accounts", "account BIGINT, balance DOUBLE")
    lake.create("alerts", "account BIGINT, text STRING")
    bank = Bank(lake, "S9")
    for text in ("first", "second"):
        entry = bank.entry(f"INSERT INTO alerts SELECT 1, '{text}'")
        bank.sink.run(entry, FIRED)
        assert bank.sink.fate(replace(entry, target_version=0), FIRED) is Fate.EFFECT
    shutil.rmtree(lake.path("alerts"))
    lake.create("alerts", "account BIGINT, text STRING")
    entry = bank.entry("INSERT INTO alerts SELECT 1, 'anew' FROM event")
    bank.sink.run(entry, FIRED)
    assert bank.rows("alerts") == [(1, "anew")] * 3
    assert bank.sink.fate(entry, FIRED) is Fate.EFFECT
    bank.catalog.close()


@pytest.mark.parametrize("append_only", [False, pytest.param(True, marks=pytest.mark.long)])
def test_g18_a_sealed_entry_cannot_land(bank: Bank, append_only: bool) -> None:
    value = str(append_only).lower()
    bank.lake.sql(f"ALTER TABLE {{alerts}} SET TBLPROPERTIES ('delta.appendOnly' = '{value}')")
    entry = bank.entry("INSERT INTO alerts SELECT 1, 'sealed'")
    before = bank.rows("alerts")
    bank.sink.seal(entry)
    assert bank.sink.fate(entry, FIRED) is Fate.SEALED
    bank.sink.run(entry, FIRED)
    assert bank.rows("alerts") == before
    assert bank.sink.fate(entry, FIRED) is Fate.SEALED


@pytest.mark.long
def test_conflicting_writers_of_one_table_all_land(bank: Bank) -> None:
    """Updates of the same file conflict; the sink tries again."""
    entries = [
        replace(bank.entry(MERGE, "accounts"), rule=f"w{n}", app_id=f"tidegate/S7/bank/w{n}")
        for n in range(2)
    ]
    before = dict(bank.rows("accounts"))
    threads = [threading.Thread(target=bank.sink.run, args=(e, FIRED)) for e in entries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dict(bank.rows("accounts")) == {7: before[7] - 2 * 130, 8: before[8] - 2 * 5}


def test_g21_of_two_engines_with_one_entry_one_lands(bank: Bank) -> None:
    """One of them has slept past its lease, with the entry in hand."""
    catalog = Catalog(bank.lake.spark, bank.book, bank.store, 2)
    catalog.open()
    other = DeltaSink(catalog, bank.book, DeltaAnalyst(catalog, bank.book), lambda _: {})
    entries = [bank.entry(f"INSERT INTO alerts SELECT 1, 'both {n}'") for n in range(3)]
    for entry in entries:
        threads = [
            threading.Thread(target=sink.run, args=(entry, FIRED)) for sink in (bank.sink, other)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert bank.sink.fate(entry, FIRED) is other.fate(entry, FIRED) is Fate.EFFECT
    found = [text for _, text in bank.rows("alerts") if text.startswith("both")]
    assert found == ["both 0", "both 1", "both 2"]
    catalog.close()


@pytest.mark.long
def test_a_statement_past_its_time_is_cancelled(bank: Bank) -> None:
    book = replace(bank.book, settings=Settings(statement_seconds_max=1))
    slow = DeltaSink(bank.catalog, book, DeltaAnalyst(bank.catalog, book), lambda _: {})
    pairs = "range(100000000) a JOIN range(100000) b ON a.id % 7 = b.id % 5 WHERE a.id + b.id < 0"
    with pytest.raises(SinkError, match="statement_seconds_max = 1"):
        slow.run(bank.entry(f"INSERT INTO alerts SELECT a.id, 'slow' FROM {pairs}"), FIRED)


def test_fields_of_signals(bank: Bank) -> None:
    signal = SignalStatement(
        {"account": "account", "total": "sum(amount)"},
        {"account": "int", "total": "decimal(12,2)"},
        ("account",),
        "noticed",
    )
    found = bank.sink.fields(replace(bank.entry("", None), statement=signal), FIRED)
    assert found.schema == pa.schema(
        [("firing_id", pa.string()), ("account", pa.int32()), ("total", pa.decimal128(12, 2))]
    )
    assert sorted((r["firing_id"], r["account"], int(r["total"])) for r in found.to_pylist()) == [
        (ZERO, 7, 130),
        (ONE, 8, 5),
    ]
    wrong = replace(signal, fields={"account": "any_value(event_type)", "total": "1"})
    with pytest.raises(SinkError, match="CAST_INVALID_INPUT"):
        bank.sink.fields(replace(bank.entry("", None), statement=wrong), FIRED)


# -- conditions ---------------------------------------------------------------------------------


def question(text: str, rule: str = "r", *, query: bool = False, **more: Any) -> Question:
    group = more.pop("group", ())
    tables = frozenset(more.pop("tables", ()))
    return Question(rule, Condition(text, query, HERE), group, tables, FIRED.relation)


def test_an_expression_is_asked_of_each_firing(bank: Bank) -> None:
    def held(text: str, *group: str) -> set[str]:
        return set(bank.conditions.hold([question(text, group=group)]).held)

    assert held("sum(amount) > 100") == {ZERO}
    assert held("account = 8", "account") == {ONE}
    assert held(
        "count(event_type) = 1 AND detected_at = started_at", "detected_at", "started_at"
    ) == {ONE}
    assert held("sum(nullif(amount, 5)) > 0") == {ZERO}  # null is not true


def test_g14_conditions_of_many_rules_are_one_job(bank: Bank, spark: SparkSession) -> None:
    """Rules of equal text and shape share a branch, others are branches of one union."""
    relation = FIRED.relation.set_column(0, "firing_id", pa.array(["22" * 16] * 3))
    questions = [
        question("sum(amount) > 100"),
        replace(question("sum(amount) > 100", "s"), relation=relation),
        question("max(amount) < 10", "t"),
    ]
    tracker, tag = spark.sparkContext.statusTracker(), bank.catalog.jobs.tag

    def jobs() -> int:
        return sum(len(tracker.getJobIdsForGroup(f"{tag}-{n}")) for n in range(1, 9))

    before = jobs()
    assert bank.conditions.hold(questions).held == {ZERO, ONE, "22" * 16}
    assert jobs() == before + 1


def test_how_far_conditions_are_counts_expressions_by_the_job_and_queries_one_by_one(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    run = type(bank.catalog.jobs).run

    def seeing(jobs: Any, *given: Any) -> Any:
        seen.append(str(stage))
        return run(jobs, *given)

    monkeypatch.setattr(type(bank.catalog.jobs), "run", seeing)
    expressions = [question("max(amount) < 10", rule) for rule in "rst"]
    query = question("SELECT firing_id FROM event", query=True)
    with stage_of("making firings") as stage:
        begin(ASKING, 4)
        bank.conditions.hold([*expressions, query])
    assert seen == ["asking conditions, 1 to 3 of 4", "asking conditions, 4 of 4"]


def test_g14_a_query_sees_the_pinned_versions(bank: Bank) -> None:
    lake = bank.lake
    text = "SELECT firing_id FROM event JOIN accounts USING (account) WHERE balance > 60"
    asked = question(text, query=True, tables=["accounts"])

    def held(version: int) -> frozenset[str]:
        return bank.conditions.hold([replace(asked, versions={"accounts": version})]).held

    lake.sql("UPDATE {accounts} SET balance = 1000 WHERE account = 8")
    latest = bank.versions("accounts") - 1
    assert (held(latest), held(1), held(0)) == ({ONE}, {ZERO}, set())


@pytest.mark.long
def test_g25_a_version_past_retention_is_not_asked_for_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(spark, tmp_path)
    path = lake.create("accounts", "account BIGINT, balance DOUBLE")
    lake.create("alerts", "account BIGINT, text STRING")
    for balance in (1, 2):
        lake.append("accounts", (7, float(balance)))
    for file in Path(path).glob("*.parquet"):
        file.unlink()
    bank = Bank(lake, "S8")
    text = "SELECT firing_id FROM event JOIN accounts USING (account) WHERE balance > 0"
    asked = question(text, query=True, tables=["accounts"])
    for version in (1, 9):  # its files are gone; its log
        answers = bank.conditions.hold([replace(asked, versions={"accounts": version})])
        [failure] = answers.failed.values()
        assert failure.lasting
        assert "bank.yaml:3:5 needs versions that are gone (VACUUM" in failure.error
        assert f"accounts version {version}; a redrive reads" in failure.error
    bank.catalog.close()


def test_s11_a_sample_is_one_value_of_any_year_or_nothing(bank: Bank) -> None:
    def sampled(text: str) -> pa.Scalar | Failure | None:
        return bank.conditions.sample(text, {"accounts": 1})

    micros = 316_516_228_560_000_000  # in the year 12000
    late = sampled(f"SELECT timestamp_micros({micros}) FROM accounts LIMIT 1")
    assert isinstance(late, pa.Scalar)
    assert late.cast(pa.int64()).as_py() == micros
    assert sampled("SELECT balance FROM accounts WHERE false") is None
    several = sampled("SELECT balance FROM accounts")
    assert isinstance(several, Failure)
    assert "several rows" in several.error


def test_g13_a_condition_that_fails_does_so_alone_among_many(bank: Bank) -> None:
    questions = [question("sum(amount) > 1"), question("1 / (sum(amount) - 5) > 0", "broken")]
    answers = bank.conditions.hold(questions)
    assert answers.held == {ZERO, ONE}
    [(asked, why)] = answers.failed.items()
    assert asked.rule == "broken"
    assert "bank.yaml:3:5 failed: [DIVIDE_BY_ZERO]" in why.error


# -- the catalog --------------------------------------------------------------------------------


def test_g31_the_database_is_dropped_and_the_data_stays(spark: SparkSession, lake: Lake) -> None:
    path = lake.create("t", "id BIGINT")
    lake.sql("INSERT INTO {t} VALUES (1)")
    spark.sql("CREATE DATABASE userdb")
    spark.sql(f"CREATE TABLE userdb.t USING delta LOCATION '{path}'")
    tables = {"t": Table("t", HERE, path=path), "u": Table("u", HERE, catalog="userdb.t")}
    catalog = Catalog(spark, Rulebook("Shop", None, "", "UTC", tables, {}, {}), "ab12", 7)
    catalog.open()
    assert spark.catalog.databaseExists(catalog.database)
    with catalog.session() as session:
        assert session.sql("SELECT * FROM t JOIN u USING (id)").count() == 1
    assert spark.catalog.currentDatabase() == "default"
    assert catalog.locations["u"].removeprefix("file:") == path
    catalog.close()
    assert not spark.catalog.databaseExists(catalog.database)
    assert lake.spark.read.format("delta").load(path).count() == 1
    spark.sql("DROP DATABASE userdb CASCADE")


@pytest.mark.long
def test_g31_a_database_is_of_one_engine_and_those_of_earlier_epochs_are_dropped(
    spark: SparkSession, lake: Lake
) -> None:
    tables = {"t": Table("t", HERE, path=lake.create("t", "id BIGINT"))}

    def opened(rulebook: str, epoch: int | None) -> Catalog:
        catalog = Catalog(spark, Rulebook(rulebook, None, "", "UTC", tables, {}, {}), "S", epoch)
        catalog.open()
        return catalog

    others = [opened("Shop_S", 3), opened("shop", None), opened("shop", None)]
    stale, killed = opened("shop", 9), opened("shop", 9)
    running = opened("shop", 10)
    assert not spark.catalog.databaseExists(killed.database)
    stale.close()
    for catalog in (running, *others):
        with catalog.session() as session:
            assert session.sql("SELECT * FROM t").count() == 0
        catalog.close()
        assert not spark.catalog.databaseExists(catalog.database)


@pytest.mark.long
def test_every_table_that_cannot_be_had_is_named(spark: SparkSession, lake: Lake) -> None:
    spark.range(1).write.parquet(lake.path("files"))
    spark.sql("CREATE DATABASE files")
    spark.sql(f"CREATE TABLE files.t USING parquet LOCATION '{lake.path('files')}'")
    tables = {
        "gone": Table("gone", HERE, path=lake.path("gone")),
        "absent": Table("absent", HERE, catalog="nowhere.absent"),
        "files": Table("files", HERE, catalog="files.t"),
    }
    catalog = Catalog(spark, Rulebook("x", None, "", "UTC", tables, {}, {}), "1", 1)
    with pytest.raises(InputError) as refused:
        catalog.open()
    spark.sql("DROP DATABASE files CASCADE")
    assert [p.code for p in refused.value.problems] == [
        "table-missing", "table-missing", "table-not-delta",
    ]  # fmt: skip
    said = str(refused.value)
    assert f"bank.yaml:3:5: table gone: no Delta table at {lake.path('gone')}" in said
    assert "table absent: Spark's catalog knows no nowhere.absent" in said
    assert "CONVERT TO DELTA" in said
    assert not Path(lake.path("gone")).exists()
    assert not spark.catalog.databaseExists(catalog.database)


@pytest.mark.long
def test_g19_what_leaves_no_marker_runs_each_time_and_says_in_the_log_whose_it_is(
    bank: Bank,
) -> None:
    bank.lake.sql("ALTER TABLE {alerts} SET TBLPROPERTIES (delta.appendOnly = false)")
    bank.sink.run(bank.entry("INSERT INTO alerts SELECT account, 'gone' FROM event"), FIRED)
    text = "DELETE FROM alerts WHERE account = :account AND text = 'gone'"
    delete = bank.entry(text, kind="unmarked", firing_ids=(ZERO,))
    before = bank.versions("alerts")
    bank.sink.run(delete, FIRST)
    assert (7, "gone") not in bank.rows("alerts")
    assert bank.versions("alerts") == before + 1
    log = Path(bank.lake.path("alerts"), "_delta_log", f"{before:020}.json").read_text()
    assert '\\"entry\\": %d' % delete.number in log  # noqa: UP031
    assert '"txn"' not in log
    bank.sink.run(delete, FIRST)  # nothing to delete: no commit, and nothing that it could skip
    assert bank.versions("alerts") == before + 1
    bank.sink.run(bank.entry("INSERT INTO alerts SELECT account, 'gone' FROM event"), FIRST)
    bank.sink.run(delete, FIRST)
    assert (7, "gone") not in bank.rows("alerts")
    marked = bank.entry(text, firing_ids=(ZERO,))
    with pytest.raises(SinkError, match="DELETE is refused"):
        bank.sink.run(marked, FIRST)
    over = "INSERT OVERWRITE alerts SELECT account, 'all' FROM event"
    bank.sink.run(bank.entry(over, kind="unmarked"), FIRST)
    assert bank.rows("alerts") == [(7, "all"), (7, "all")]
