"""What attackers tried: refused by `validate --tables`, and nothing of it has run (G27)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.hostile.conftest import Judge
from tidegate import rules
from tidegate.connectors.delta import session as sessions
from tidegate.connectors.delta.nodes import said
from tidegate.connectors.delta.plans import Plans
from tidegate.connectors.delta.session import SUBSTITUTE, check_session, new_session
from tidegate.engine.app import Engine
from tidegate.engine.app.tables import check_tables
from tidegate.rules.errors import EngineError, InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHELL = "SELECT max(k) FROM (SELECT TRANSFORM(account) USING 'touch {marker}' AS k FROM accounts)"
IN_WINDOW = "count(*) OVER w FROM event WINDOW w AS (PARTITION BY ({}))"
BY_SHELL = {
    "a window's definition": f"INSERT INTO alerts SELECT account, {IN_WINDOW.format(SHELL)}",
    "a window's definition that is not used": (
        f"INSERT INTO alerts SELECT 1, 'x' FROM event WINDOW w AS (ORDER BY ({SHELL}))"
    ),
    "an instant of a time travel": (
        f"INSERT INTO alerts SELECT account, 'x' FROM accounts TIMESTAMP AS OF ({SHELL})"
    ),
    "an instant within a cast": (
        "INSERT INTO alerts SELECT account, 'x' FROM accounts TIMESTAMP AS OF"
        f" CAST(coalesce(({SHELL}), '2026') AS TIMESTAMP)"
    ),
    "a condition of a merge": (
        f"MERGE INTO accounts a USING event e ON a.account = ({SHELL}) WHEN MATCHED THEN DELETE"
    ),
    "a value of an update": f"UPDATE accounts SET balance = ({SHELL})",
    "a row of values": f"INSERT INTO alerts VALUES (({SHELL}), 'x')",
    "an argument of a table function": f"INSERT INTO alerts SELECT id, 'x' FROM range(({SHELL}))",
    "a hint": f"INSERT INTO alerts SELECT /*+ REPARTITION(({SHELL})) */ account, kind FROM event",
    "a pipe": f"INSERT INTO alerts FROM event |> EXTEND ({SHELL}) AS k |> SELECT account, k",
    "a recursion": (
        f"INSERT INTO alerts WITH RECURSIVE r AS (SELECT ({SHELL}) AS n UNION ALL SELECT n + 1 FROM"
        " r WHERE n < 3) SELECT n, 'x' FROM r"
    ),
}
BOOK = """
rulebook: attacked
tables:
  accounts: {{path: "{folder}/accounts"}}
  alerts: {{path: "{folder}/alerts"}}
events:
  w: {{signal: {{account: bigint, kind: string}}}}
rules:
"""


def test_g27_no_shell_is_run_by_validate(judge: Judge, spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"INSERT INTO delta.`{judge.folder}/accounts` VALUES (1, 1.0, false)")
    text, marker = BOOK.format(folder=judge.folder), tmp_path / "ran"
    for number, attack in enumerate(BY_SHELL.values()):
        text += f"  r{number}:\n    on: w\n    do:\n"
        text += f"      - sql: {json.dumps(attack.format(marker=marker))}\n"
    query = f"SELECT firing_id, {IN_WINDOW.format(SHELL)}".format(marker=marker)
    text += f"  asked: {{on: w, if: {{sql: {json.dumps(query)}}}}}\n"
    book = rules.load(text)
    with pytest.raises(InputError) as refused:
        check_tables(book, spark_conf={})
    assert not marker.exists()
    found = {problem.place.path.split(".")[1] for problem in refused.value.problems}
    assert found == set(book.rules)
    codes = {"sql-kind", "sql-subquery", "sql-syntax"}
    assert {problem.code for problem in refused.value.problems} <= codes


XML = "map('rowValidationXSDPath', '/etc/passwd')"
REFUSED = [
    # the hole of the windows let more in than a shell
    ("query", f"SELECT firing_id, {IN_WINDOW.format('SELECT 1 FROM undeclared')}", "undeclared"),
    (
        "query",
        f"SELECT firing_id, {IN_WINDOW.format('SELECT max(1) FROM accounts VERSION AS OF 0')}",
        "VERSION AS OF",
    ),
    (
        "query",
        f"SELECT firing_id, {IN_WINDOW.format('''SELECT IDENTIFIER('acc' || 'ount')''')}",
        "IDENTIFIER(..)",
    ),
    # names
    ("action", "WITH `accountſ` AS (SELECT 1 AS account) INSERT INTO alerts SELECT account, 'x'"
     " FROM accounts", "WITH accountſ"),
    ("action", "WITH ACCOUNTS AS (SELECT 1 AS account) INSERT INTO alerts SELECT account, 'x' FROM"
     " accounts", "hides the declared table"),
    ("query", "WITH `accountſ` AS (SELECT 1 AS x) SELECT firing_id FROM event, accounts", "ASCII"),
    ("action", "INSERT INTO alerts SELECT account, 'x' FROM `accountſ`", "not a declared table"),
    ("action", "INSERT INTO `alertſ` SELECT account, 'x' FROM accounts", "not a declared table"),
    ("action", "INSERT INTO alerts SELECT 1, 'x' FROM other.db.rates", "reads: [other.db.rates]"),
    ("query", "SELECT firing_id FROM event, other.db.rates", "declared tables only"),
    # options
    ("action", f"INSERT INTO alerts SELECT 1, string(from_xml(kind, 'a INT', {XML})) FROM event",
     "the function from_xml(..)"),
    ("action", "INSERT INTO alerts SELECT 1, string(from_avro(binary(kind), '\"int\"', map("
     "'avroSchemaUrl', 'file:///etc/passwd'))) FROM event", "the function from_avro(..)"),
    ("action", "MERGE WITH SCHEMA EVOLUTION INTO accounts a USING event e ON a.account = e.account"
     " WHEN MATCHED THEN UPDATE SET *", "WITH SCHEMA EVOLUTION"),
    ("action", "INSERT WITH SCHEMA EVOLUTION INTO alerts SELECT account, kind FROM event",
     "WITH SCHEMA EVOLUTION"),
    ("action", "INSERT INTO alerts SELECT account, 'x' FROM accounts WITH ('versionAsOf' = '0')",
     "options"),
    ("query", "SELECT firing_id FROM event, accounts WITH ('timestampAsOf' = '2026-01-01')",
     "options"),
    # what depends on the machine, the user, the session
    ("action", "INSERT INTO alerts SELECT account, input_file_name() FROM accounts",
     "input_file_name(..)"),
    ("action", "INSERT INTO alerts SELECT account, _metadata.file_path FROM accounts", "_metadata"),
    ("action", "INSERT INTO alerts SELECT account, to_json(_METADATA) FROM accounts", "_metadata"),
    ("action", "INSERT INTO alerts SELECT account, m.file_name FROM (SELECT account, _metadata AS m"
     " FROM accounts)", "_metadata"),
    ("action", "UPDATE alerts SET text = _metadata.file_path", "_metadata"),
    ("action", "MERGE INTO alerts a USING accounts b ON a.account = b.account WHEN MATCHED THEN"
     " UPDATE SET text = b._metadata.file_path", "_metadata"),
    ("query", "SELECT firing_id FROM event, accounts a WHERE a._metadata.file_path = kind",
     "_metadata"),
    ("action", "INSERT INTO alerts SELECT account, current_user() FROM event", "current_user(..)"),
    ("action", "INSERT INTO alerts SELECT account, current_user FROM event", "current_user"),
    ("query", "SELECT firing_id FROM event WHERE kind = session_user()", "session_user(..)"),
    ("action", "INSERT INTO alerts SELECT 1, try_reflect('java.lang.System', 'getenv', 'HOME')",
     "try_reflect(..)"),
    ("action", "INSERT INTO alerts SELECT 1, schema_of_json('{}')", "schema_of_json(..)"),
    ("action", "INSERT INTO alerts SELECT account, x.c FROM event LATERAL VIEW reflect('a', 'b') x"
     " AS c", "reflect(..)"),
    ("action", "INSERT INTO alerts SELECT 1, bank.tax(account) FROM event", "--policy"),
    ("where", "input_file_name() = 'x'", "input_file_name(..)"),
    ("where", "current_user() = 'x'", "current_user(..)"),
    ("where", "kind = current_user", "current_user"),
    ("if", "any_value(kind) = session_user", "current_user(..)"),
    # clocks in the shape of literals
    ("where", "booked_at > timestamp 'now'", "'now' is refused"),
    ("where", "day = date'Today'", "is refused"),
    ("where", "day = date \"tomorrow\"", "is refused"),
    ("where", "day = date r'yesterday'", "is refused"),
    ("where", "day = date '\\u006eow'", "is refused"),
    ("where", "cast('today' as date) = day", "cast('today' AS date)"),
    ("where", "day = 'yesterday'", "cast('yesterday' AS date)"),
    ("where", "booked_at > concat('no', 'w')", "a computed text"),
    ("where", "booked_at > to_timestamp(' NOW ')", "cast(' NOW ' AS timestamp)"),
    ("where", "to_date('tomorrow UTC') = day", "cast('tomorrow UTC' AS date)"),
    ("where", "exists(tags, t -> day < date'now')", "is refused"),
    ("if", "max(detected_at) > timestamp_ntz'now'", "is refused"),
    ("if", "detected_at > 'now'", "cast('now' AS timestamp)"),
    # accepted once, and fatal when run
    ("where", "row_number() OVER (ORDER BY account) > 1", "aggregates, windows"),
    ("where", "explode(array(true))", "aggregates, windows"),
    ("where", "max(account) > 1", "aggregates, windows"),
    ("query", "SELECT NULL AS firing_id", "returns void as firing_id"),
    ("query", "SELECT array(firing_id) AS firing_id FROM event", "returns array<string>"),
    ("query", "SELECT firing_id, kind AS FIRING_ID FROM event", "returns 2 column firing_ids"),
    # no text is empty
    ("action", "INSERT INTO alerts SELECT 'x", "["),
    ("where", "date 'nonsense' = day", "["),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_g27_refused(judge: Judge, number: int) -> None:
    place, text, message = REFUSED[number]
    problem = judge(place, text)
    assert problem is not None
    assert message in str(problem)
    assert problem.message.strip()


def test_g27_a_column_of_that_name_is_no_hidden_one(judge: Judge) -> None:
    text = "INSERT INTO alerts SELECT account, _metadata FROM (SELECT account, 'x' AS _metadata"
    assert judge("action", text + " FROM event)") is None


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("CreateSQLFunctionCommand", "CREATE SQL FUNCTION"),
        ("DropTable", "DROP TABLE"),
        ("UnresolvedDeclareVariable", "DECLARE VARIABLE"),
    ],
)
def test_refused_nodes_are_called_as_sql_has_them(kind: str, words: str) -> None:
    assert said(kind) == words


def test_reads_are_what_actions_may_read_and_conditions_may_not(
    judge: Judge, spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS elsewhere")
    for name in ("rates", "secrets"):
        at = f"USING delta LOCATION '{tmp_path / name}'"
        spark.sql(f"CREATE TABLE elsewhere.{name} {at} AS SELECT 1 AS account, 'x' AS text")
    spark.sql("CREATE VIEW elsewhere.seen AS SELECT * FROM elsewhere.secrets")
    text = "reads: [spark_catalog.elsewhere.rates, elsewhere.seen]\n"
    text += BOOK.format(folder=judge.folder)
    for number, table in enumerate(("rates", "seen", "secrets")):
        query = f"INSERT INTO alerts SELECT * FROM elsewhere.{table}"
        text += f"  r{number}: {{on: w, do: [{{sql: {query}}}]}}\n"
    asked = "SELECT firing_id FROM event, elsewhere.rates"
    text += f"  asked: {{on: w, if: {{sql: '{asked}'}}}}\n"
    with pytest.raises(InputError) as refused:
        check_tables(rules.load(text), spark_conf={})
    spark.sql("DROP DATABASE elsewhere CASCADE")
    first, second = refused.value.problems
    assert "elsewhere.secrets is neither a declared table nor listed under `reads:`" in str(first)
    assert "a condition names declared tables only" in str(second)


EVIL = "java_method('java.lang.System', 'setProperty', 'tidegate.ran', 'yes')"


@pytest.fixture
def owned(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A table whose owner writes SQL into it, in a place that Delta checks and one it does not."""
    table = tmp_path / "alerts"
    spark.sql(
        f"CREATE TABLE delta.`{table}` (account BIGINT, text STRING, day DATE GENERATED ALWAYS AS"
        " (CAST(text AS DATE))) USING delta"
        " TBLPROPERTIES ('delta.constraints.evil' = 'account > 0')"
    )
    yield table
    spark._jvm.java.lang.System.clearProperty("tidegate.ran")  # type: ignore[union-attr]


@pytest.mark.parametrize("what", ["CHECK constraint", "generated column", "default of column"])
def test_g27_sql_in_a_target_is_judged_before_it_is_written(
    judge: Judge,
    spark: SparkSession,
    owned: Path,
    tmp_path: Path,
    what: str,
) -> None:
    attacked = tmp_path / "attacked"
    shutil.copytree(judge.folder / "accounts", attacked / "accounts")
    shutil.copytree(owned, attacked / "alerts", ignore=shutil.ignore_patterns("*.crc"))
    log = attacked / "alerts" / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    metadata = next(line["metaData"] for line in lines if "metaData" in line)
    schema = json.loads(metadata["schemaString"])
    if what == "CHECK constraint":
        metadata["configuration"]["delta.constraints.evil"] = f"{EVIL} IS NULL"
    elif what == "generated column":
        schema["fields"][2]["metadata"]["delta.generationExpression"] = f"date({EVIL})"
    else:
        schema["fields"][1]["metadata"]["CURRENT_DEFAULT"] = EVIL
    metadata["schemaString"] = json.dumps(schema)
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = BOOK.format(folder=attacked)
    text += "  r: {on: w, do: [{sql: 'INSERT INTO alerts (account, text) SELECT account, kind FROM"
    text += " event'}]}\n"
    with pytest.raises(InputError) as refused:
        check_tables(rules.load(text), spark_conf={})
    assert what in str(refused.value)
    assert "the function java_method(..) is refused" in str(refused.value)
    system = spark._jvm.java.lang.System  # type: ignore[union-attr]
    assert system.getProperty("tidegate.ran") is None


def test_g27_a_constraint_that_comes_later_stops_the_write(
    judge: Judge, spark: SparkSession
) -> None:
    text = "INSERT INTO dated (booked_at, amount) SELECT detected_at, amount FROM event"
    assert judge("action", text) is None
    table = f"delta.`{judge.folder / 'dated'}`"
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT late CHECK (java_method('java.lang.Math', 'abs',"
              " -1) = '1')")  # fmt: skip
    from tests.hostile.conftest import EVENT, HERE

    with pytest.raises(InputError, match="the CHECK constraint late of the target dated"):
        judge.analyst.statement("r", text, HERE, EVENT, (), at_least_once=False)
    spark.sql(f"ALTER TABLE {table} DROP CONSTRAINT late")
    assert (
        judge.analyst.statement("r", text, HERE, EVENT, (), at_least_once=False).target == "dated"
    )


def test_g27_the_operator_may_let_in_a_function(
    judge: Judge, spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql("CREATE DATABASE IF NOT EXISTS bank")
    spark.sql("CREATE FUNCTION bank.tax(x BIGINT) RETURNS BIGINT RETURN x * 2")
    text = BOOK.format(folder=judge.folder)
    calls = ("bank.tax(account)", "int(java_method('java.lang.Math', 'abs', -1))")
    for number, call in enumerate(calls):
        query = f"INSERT INTO alerts SELECT {call}, kind FROM event"
        text += f"  r{number}: {{on: w, do: [{{sql: {json.dumps(query)}}}]}}\n"
    book = rules.load(text)
    with pytest.raises(InputError) as refused:
        check_tables(book, spark_conf={})
    assert [problem.code for problem in refused.value.problems] == ["sql-function"] * 2
    policy = tmp_path / "policy.yaml"
    policy.write_text("functions: [bank.tax, java_method, reflect]")
    check_tables(book, spark_conf={}, policy=policy)
    spark.sql("DROP DATABASE bank CASCADE")


SECRET = "${system:TIDEGATE_SECRET_X}${env:PATH}"


def test_g27_no_variable_is_put_into_a_text(
    judge: Judge, spark: SparkSession, tmp_path: Path
) -> None:
    """The user's own session, which does so, stays the active one."""
    shutil.copytree(judge.folder / "alerts", tmp_path / "${env:PATH}")
    moves = f"delta.`{judge.folder / 'moves'}`"
    spark.sql(f"ALTER TABLE {moves} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    book = tmp_path / "book.yaml"
    book.write_text(f"""
rulebook: secrets
tables:
  alerts: {{path: '${{env:PATH}}'}}
  moves: {{path: '{judge.folder}/moves'}}
events:
  moved: {{on: insert, table: moves, where: "concat(kind, 'x') = '{SECRET}x'"}}
  told: {{signal: {{text: string}}}}
rules:
  acts:
    on: moved
    if: "max(kind) = '{SECRET}'"
    do:
      - sql: "INSERT INTO alerts SELECT 1, '{SECRET}' FROM event WHERE kind = '{SECRET}'"
      - signal: {{told: {{text: "'{SECRET}'"}}}}
  asks:
    on: told
    if: {{sql: "SELECT firing_id FROM event WHERE text = '{SECRET}'"}}
    do: [{{sql: "INSERT INTO alerts SELECT 2, text FROM event"}}]
""")
    system = spark._jvm.java.lang.System  # type: ignore[union-attr]
    system.setProperty("TIDEGATE_SECRET_X", "hidden")
    spark.conf.set(SUBSTITUTE, "true")
    try:
        store = f"sqlite:///{tmp_path / 'store.db'}"
        with Engine(book, spark=spark, store=store) as engine:
            engine.run_once()
            rows = spark.createDataFrame([(1, SECRET)], "move BIGINT, kind STRING")
            rows.write.format("delta").mode("append").save(str(judge.folder / "moves"))
            engine.run_once()
            engine.run_once()
        held = spark.read.format("delta").load(str(tmp_path / "${env:PATH}")).collect()
    finally:
        spark.conf.set(SUBSTITUTE, "false")
        system.clearProperty("TIDEGATE_SECRET_X")
    assert sorted(tuple(row) for row in held) == [(1, SECRET), (2, SECRET)]


def test_g27_substitution_is_checked_at_start(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_session(spark)
    text = "'${spark.sql.session.timeZone}'"
    assert new_session(spark).conf.get(SUBSTITUTE) == "false"
    monkeypatch.setattr(sessions, "SMALL_JOBS", {**sessions.SMALL_JOBS, SUBSTITUTE: "true"})
    assert str(Plans(new_session(spark)).expression(text).value()) == "UTC"
    with pytest.raises(EngineError, match="puts variables into SQL texts"):
        check_session(spark)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("where", "(" * 3_000 + "account" + ")" * 3_000 + " > 1"),
        ("where", "NOT " * 3_000 + "account > 1"),
        ("if", "NOT " * 20_000 + "true"),
        ("action", f"INSERT INTO alerts SELECT 1, {'upper(' * 3_000}'x'{')' * 3_000}"),
    ],
)
def test_a_text_that_is_nested_too_deeply_is_refused(judge: Judge, place: str, text: str) -> None:
    problem = judge(place, text)
    assert problem is not None
    assert problem.code in ("sql-syntax", "sql-analysis")
    assert len(str(problem)) < 1_000


def test_a_text_that_is_nested_deeply_is_let_in(judge: Judge) -> None:
    assert judge("where", "(" * 60 + "account" + ")" * 60 + " > 1") is None
