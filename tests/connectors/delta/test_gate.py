"""What SQL is let in (G19, G25, G27): on the parsed plan, then on the analysed one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.support.rulebooks import flat_rule
from tidegate.connectors.delta.analyst import DeltaAnalyst
from tidegate.connectors.delta.catalog import Catalog
from tidegate.engine.core.columns.transitions import Transitions, with_transitions
from tidegate.engine.core.values import Reading
from tidegate.rules.errors import InputError, Place
from tidegate.rules.expressions.parser import parse
from tidegate.rules.model import Condition, Context, Rule, Rulebook, SignalAction, Sql, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Place("bank.yaml", 3, 5, "rules.r.do[0].sql")
INSTANT = pa.timestamp("us", "UTC")
EVENT = pa.schema(
    [
        ("firing_id", pa.string()),
        ("event_type", pa.string()),
        ("occurred_at", INSTANT),
        ("detected_at", INSTANT),
        ("account", pa.int64()),
        ("amount", pa.float64()),
        ("kind", pa.string()),
        ("site", pa.struct([("city", pa.string()), ("zone", pa.struct([("id", pa.int32())]))])),
        ("old", pa.struct([("amount", pa.float64()), ("kind", pa.string())])),
    ]
)
PER_FIRING = ("firing_id", "detected_at", "account")
PARAMETERS = ("firing_id", "detected_at", "account")


def rule(**more: object) -> Rule:
    return flat_rule("r", HERE, parse("w", HERE), "w", Context.RESTRICTED, **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def analyst(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DeltaAnalyst]:
    folder = tmp_path_factory.mktemp("gate")
    schemas = {
        "accounts": "account BIGINT, balance DOUBLE, blocked BOOLEAN",
        "alerts": "account BIGINT, text STRING",
    }
    for name, columns in schemas.items():
        spark.createDataFrame([], columns).write.format("delta").save(str(folder / name))
    tables = {name: Table(name, HERE, path=str(folder / name)) for name in schemas}
    reads = (("global_temp", "gate_view"),)
    book = Rulebook("gate", None, "", "UTC", tables, {}, {}, reads=reads)
    catalog = Catalog(spark, book, "gate")
    catalog.open()
    yield DeltaAnalyst(catalog, book, unmarked=("delete",))
    catalog.close()


def action(analyst: DeltaAnalyst, text: str, *parameters: str) -> Reading:
    return analyst.action(rule(), Sql(text, HERE), EVENT, parameters)


def ask(analyst: DeltaAnalyst, text: str, *, query: bool = False) -> Reading:
    return analyst.condition(rule(condition=Condition(text, query, HERE)), EVENT, PER_FIRING)


LET_IN = {
    "INSERT INTO alerts SELECT account, kind FROM event": "account kind",
    "INSERT INTO Alerts BY NAME SELECT account, firing_id AS text FROM EVENT": "account firing_id",
    "WITH e AS (SELECT account FROM event) INSERT INTO alerts SELECT account, 'x' FROM e": (
        "account"
    ),
    "INSERT INTO alerts SELECT account, old.kind FROM event WHERE old.amount > 1": (
        "account old.amount old.kind"
    ),
    "INSERT INTO alerts SELECT account, site.city FROM event WHERE site.zone.id > 1": (
        "account site"
    ),
    "INSERT INTO alerts SELECT account, string(old) FROM event WHERE old.amount > 1": "account old",
    "INSERT INTO alerts SELECT a.account, 'x' FROM accounts a WHERE EXISTS (SELECT 1 FROM event e"
    " WHERE e.account = a.account AND e.amount > a.balance)": "account amount",
    "INSERT INTO alerts SELECT 1, 'x' FROM accounts WHERE account IN (SELECT account FROM event)": (
        "account"
    ),
    "INSERT INTO alerts SELECT count(*), 'x' FROM p_r": "",
    "INSERT INTO alerts SELECT account, kind FROM (SELECT * FROM event)": " ".join(EVENT.names),
    "INSERT INTO alerts SELECT account, text FROM (SELECT * EXCEPT (amount, kind, site, old,"
    " event_type, detected_at, firing_id), 'x' AS text FROM event)": " ".join(EVENT.names),
    "UPDATE accounts SET blocked = true WHERE balance < 0": "",
    "MERGE INTO accounts a USING event e ON a.account = e.account WHEN MATCHED AND e.amount > 1"
    " THEN UPDATE SET balance = a.balance - e.amount WHEN NOT MATCHED THEN INSERT (account)"
    " VALUES (e.account)": "account amount",
    "MERGE INTO accounts a USING (SELECT DISTINCT account FROM event) e ON a.account = e.account"
    " WHEN MATCHED THEN DELETE": "account",
    "INSERT INTO alerts SELECT account, kind FROM event |> WHERE account > 1": "account kind",
    "INSERT INTO alerts SELECT account, kind FROM event JOIN accounts USING (account)": (
        "account kind"
    ),
    "INSERT INTO alerts SELECT account, 'x' FROM (SELECT account, kind FROM event e JOIN accounts a"
    " USING (account))": "account kind",
}


@pytest.mark.parametrize("text", LET_IN)
def test_g06_what_an_action_reads_is_found_on_its_analysed_plan(
    analyst: DeltaAnalyst, text: str
) -> None:
    reading = action(analyst, text)
    assert reading.columns == set(LET_IN[text].split())
    assert reading.target == ("alerts" if "INSERT" in text.split("NOT MATCHED")[0] else "accounts")


def test_g19_what_leaves_no_marker_needs_the_rule_and_the_policy(analyst: DeltaAnalyst) -> None:
    again = rule(at_least_once=True)
    delete = Sql("DELETE FROM accounts WHERE account = :account", HERE)
    found = analyst.action(again, delete, EVENT, PARAMETERS)
    assert (found.unmarked, found.appends, found.target) == (True, False, "accounts")
    overwrite = Sql("INSERT OVERWRITE alerts SELECT account, kind FROM event", HERE)
    with pytest.raises(InputError, match=r"(?s)lets in no INSERT OVERWRITE.*insert_overwrite"):
        analyst.action(again, overwrite, EVENT, ())
    for refused in (delete, overwrite):
        with pytest.raises(InputError, match=r"DELETE is refused|INSERT OVERWRITE is no action"):
            analyst.action(rule(), refused, EVENT, PARAMETERS)
    marked = Sql("INSERT INTO alerts SELECT account, kind FROM event", HERE)
    assert not analyst.action(again, marked, EVENT, ()).unmarked
    with pytest.raises(InputError, match="is no action"):
        analyst.action(again, Sql("TRUNCATE TABLE accounts", HERE), EVENT, ())
    with pytest.raises(InputError, match="not a declared table"):
        analyst.action(again, Sql("DELETE FROM global_temp.gate_view", HERE), EVENT, ())


def test_a_merge_source_of_nothing_but_event_is_fixed(analyst: DeltaAnalyst) -> None:
    merge = "MERGE INTO accounts a USING ({}) e ON a.account = e.account WHEN MATCHED THEN DELETE"
    assert action(analyst, merge.format("SELECT max(account) AS account FROM event")).fixed_source
    assert action(analyst, merge.format("SELECT 1 AS account")).fixed_source
    for other in ("SELECT account FROM alerts", "SELECT account FROM event WHERE rand() > 0.5"):
        assert not action(analyst, merge.format(other)).fixed_source


def test_g16_an_insert_has_rows_of_its_own_unless_it_reads_a_relation(
    analyst: DeltaAnalyst, spark: SparkSession
) -> None:
    """A relation under `reads:` may be a view of the target."""
    spark.range(3).createOrReplaceGlobalTempView("gate_view")
    text = (
        "WITH w AS (SELECT account, kind FROM event) INSERT INTO alerts SELECT account, {} FROM w"
    )
    for own in ("kind", "uuid()", "(SELECT max(kind) FROM event)"):
        assert action(analyst, text.format(own)).own_rows
    for read in ("(SELECT max(text) FROM alerts)", "(SELECT max(id) FROM global_temp.gate_view)"):
        assert not action(analyst, text.format(read)).own_rows
    spark.catalog.dropGlobalTempView("gate_view")


KEYED = with_transitions(
    EVENT,
    [
        Transitions("moves", "m_", ("id",), {"id": "account", "sum": "amount"}, {"w": "update"}),
        Transitions("accounts", "", refused="accounts declares no key", hint="declare it"),
    ],
)
OF_MOVES = {"event_type", "occurred_at", "account", "amount", "old"}


def test_transition_tables_are_read_as_all_that_they_are_made_of(analyst: DeltaAnalyst) -> None:
    def reads(text: str) -> Reading:
        return analyst.action(rule(), Sql(text, HERE), KEYED, ())

    found = reads(
        "INSERT INTO alerts SELECT i.id, e.kind FROM M_Inserted i JOIN event e USING (firing_id)"
    )
    assert (found.columns - {"id"}, found.transitions) == (
        OF_MOVES | {"firing_id", "kind"},
        {"m_inserted"},
    )
    merge = (
        "MERGE INTO accounts a USING m_new_updated n ON a.account = n.id WHEN MATCHED THEN DELETE"
    )
    assert (reads(merge).fixed_source, reads(merge).target) == (True, "accounts")
    cte = "WITH m_deleted AS (SELECT 1 AS n) INSERT INTO alerts SELECT n, 'x' FROM m_deleted"
    assert reads(cte).transitions == set()
    query = Condition("SELECT firing_id FROM m_old_updated WHERE sum > 1", True, HERE)
    asked = analyst.condition(rule(condition=query), KEYED, PER_FIRING)
    assert (asked.columns >= OF_MOVES, asked.transitions) == (True, {"m_old_updated"})
    for text, said in (
        (
            "INSERT INTO alerts SELECT id, 'x' FROM inserted",
            "no inserted: accounts declares no key",
        ),
        ("INSERT INTO alerts SELECT id, 'x' FROM m_insertd", "did you mean m_inserted?"),
        ("INSERT INTO m_inserted SELECT * FROM event", "is not a declared table"),
    ):
        with pytest.raises(InputError) as refused:
            reads(text)
        assert said in str(refused.value)
        assert "bank.yaml:3:5" in str(refused.value)


REFUSED = {
    "DELETE FROM accounts WHERE account = 3": ("sql-delete", "DELETE is refused"),
    "INSERT OVERWRITE alerts SELECT 1, 'x'": ("sql-kind", "INSERT OVERWRITE is no action"),
    "INSERT INTO alerts REPLACE WHERE account = 1 SELECT 1, 'x'": ("sql-kind", "REPLACE WHERE"),
    "FROM event INSERT INTO alerts SELECT account, kind INSERT INTO alerts SELECT 1, 'x'": (
        "sql-kind",
        "UNION is no action",
    ),
    "SELECT * FROM event": ("sql-kind", "SELECT is no action"),
    "DROP TABLE alerts": ("sql-kind", "DROP TABLE is no action"),
    "CREATE TABLE t AS SELECT 1": ("sql-kind", "no action"),
    "TRUNCATE TABLE alerts": ("sql-kind", "no action"),
    "SET a = 1": ("sql-kind", "SET is no action"),
    "INSERT INTO alerts SELECT 1, 'x'; INSERT INTO alerts SELECT 2, 'y'": (
        "sql-syntax",
        "write one statement in each sql item",
    ),
    "BEGIN INSERT INTO alerts SELECT 1, 'x'; END": ("sql-kind", "SQL scripting"),
    "EXECUTE IMMEDIATE 'SELECT 1'": ("sql-kind", "EXECUTE IMMEDIATE"),
    "CALL system.x()": ("sql-kind", "CALL is no action"),
    "INSERT INTO alerts SELECT 1, 'x'; SELECT 1": ("sql-syntax", "extra input"),
    "INSERT INTO alerts SELCT 1": ("sql-syntax", "Syntax error at or near"),
    "INSERT INTO alerts SELECT TRANSFORM (account) USING 'cat' FROM event": (
        "sql-kind",
        "TRANSFORM .. USING",
    ),
    "INSERT INTO spark_catalog.gate.alerts SELECT 1, 'x'": ("sql-target", "not a declared table"),
    "INSERT INTO delta.`/lake/alerts` SELECT 1, 'x'": ("sql-target", "not a declared table"),
    "INSERT INTO event SELECT 1": ("sql-target", "not a declared table"),
    "UPDATE alert SET text = 'x'": ("sql-target", "did you mean alerts?"),
    "INSERT INTO alerts WITH ('txnAppId' = 'x') SELECT 1, 'x'": ("sql-options", "marker"),
    "WITH accounts AS (SELECT 1) UPDATE accounts SET balance = 1": ("sql-hidden-table", "hides"),
    "INSERT INTO alerts SELECT 1, value FROM text.`/etc/passwd`": ("sql-path", "reads a path"),
    "INSERT INTO alerts SELECT 1, (SELECT max(value) FROM text.`/x`)": ("sql-path", "reads a path"),
    "INSERT INTO alerts SELECT 1, 'x' FROM delta.`/x` VERSION AS OF 1": ("sql-path", "path"),
    "INSERT INTO alerts SELECT 1, 'x' FROM csv.`s3://x/y`": ("sql-path", "reads a path"),
    "INSERT INTO alerts SELECT account, 'x' FROM acounts": ("sql-table", "did you mean accounts?"),
    "INSERT INTO alerts SELECT 1, 'x' FROM table_changes_by_path('/x', 0)": (
        "sql-function",
        "table_changes_by_path",
    ),
    "INSERT INTO alerts SELECT 1, reflect('java.lang.System', 'getenv', 'HOME')": (
        "sql-function",
        "reflect",
    ),
    "INSERT INTO alerts SELECT 1, java_method('java.lang.System', 'exit', 0)": (
        "sql-function",
        "java_method",
    ),
    "INSERT INTO alerts SELECT 1, lcase2(kind) FROM event": (
        "sql-function",
        "there is no function lcase2",
    ),
    "INSERT INTO alerts SELECT account, to_json(struct(*)) FROM event": (
        "sql-kind",
        "name the columns: struct(account_id, amount)",
    ),
    "INSERT INTO alerts SELECT 1, system.builtin.reflect('a', 'b')": ("sql-function", "reflect"),
    "INSERT INTO alerts SELECT 1, 'x' FROM IDENTIFIER(concat('ev', 'ent'))": (
        "sql-kind",
        "IDENTIFIER(..)",
    ),
    "INSERT INTO alerts SELECT IDENTIFIER('acc' || 'ount'), 'x' FROM event": (
        "sql-kind",
        "IDENTIFIER(..)",
    ),
    "INSERT INTO alerts SELECT :account, 'x'": ("sql-parameter", "for_each: firing"),
    "INSERT INTO alerts SELECT ?, 'x'": ("sql-parameter", "no parameter ?"),
    "INSERT INTO alerts SELECT accont, 'x' FROM event": ("sql-analysis", "accont"),
    "INSERT INTO alerts SELECT 1": ("sql-analysis", "column"),
    "INSERT INTO alerts SELECT 1, 'x', 'y'": ("sql-analysis", "gives 3 columns, its target has 2"),
    "INSERT INTO alerts BY NAME SELECT 1 AS account, 'x' AS text, 2 AS more": (
        "sql-analysis",
        "too many data columns",
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_g19_g27_actions_refused(analyst: DeltaAnalyst, text: str) -> None:
    code, said = REFUSED[text]
    with pytest.raises(InputError) as refused:
        action(analyst, text)
    (problem,) = refused.value.problems
    assert problem.code == code
    assert said in str(problem)


@pytest.mark.parametrize("first_versions", ["parquet", ""])  # of Spark's interface to sources
def test_g27_a_relation_over_a_path_behind_a_view_is_found_on_the_analysed_plan(
    analyst: DeltaAnalyst, spark: SparkSession, tmp_path: object, first_versions: str
) -> None:
    spark.range(1).write.parquet(f"{tmp_path}/files")
    sources = "spark.sql.sources.useV1SourceList"
    before = spark.conf.get(sources)
    spark.conf.set(sources, first_versions)
    spark.read.parquet(f"{tmp_path}/files").createOrReplaceGlobalTempView("gate_view")
    spark.conf.set(sources, before)
    with pytest.raises(InputError, match="a relation without a name is read"):
        action(analyst, "INSERT INTO alerts SELECT id, 'x' FROM global_temp.gate_view")
    spark.catalog.dropGlobalTempView("gate_view")


@pytest.mark.parametrize(
    ("delete", "merge"),
    [
        (
            "DELETE FROM accounts a WHERE a.balance < 0;",
            "MERGE INTO accounts AS a USING (SELECT 1) AS one ON a.balance < 0"
            " WHEN MATCHED THEN DELETE",
        ),
        (
            "delete from accounts",
            "MERGE INTO accounts USING (SELECT 1) AS one ON true WHEN MATCHED THEN DELETE",
        ),
        (
            "DELETE FROM accounts WHERE account IN (SELECT account FROM event)",
            "MERGE INTO accounts USING (SELECT DISTINCT * FROM (SELECT account FROM event) AS"
            " s(doomed)) AS d ON accounts.account = d.doomed WHEN MATCHED THEN DELETE",
        ),
    ],
)
def test_g19_the_merge_that_is_printed_for_a_delete_is_let_in(
    analyst: DeltaAnalyst, delete: str, merge: str
) -> None:
    with pytest.raises(InputError) as refused:
        action(analyst, delete)
    assert " ".join(refused.value.problems[0].hint.split()) == f"write: {merge}"
    assert action(analyst, merge).target == "accounts"


def test_parameters_of_a_statement_for_each_firing_have_their_columns_types(
    analyst: DeltaAnalyst,
) -> None:
    values = ":account, concat(:firing_id, date(:detected_at), kind)"
    text = f"INSERT INTO alerts SELECT {values} FROM event"
    assert action(analyst, text, *PARAMETERS).columns == {"kind"}
    with pytest.raises(InputError, match="known are :firing_id, :detected_at, :account"):
        action(analyst, "INSERT INTO alerts SELECT :amount, 'x'", *PARAMETERS)
    with pytest.raises(InputError, match=r"IDENTIFIER\(..\) is refused"):
        action(analyst, "INSERT INTO alerts SELECT 1, 'x' FROM IDENTIFIER(:firing_id)", *PARAMETERS)


EXPRESSIONS = {
    "sum(amount) > 1000": "amount",
    "count(event_type) = 0": "event_type",
    "count(*) > 2": "",
    "account > 3 AND max(old.amount) < 3": "account old.amount",
    "any_value(kind) = 'a'": "kind",
    "max(site.zone.id) = 1": "site",
    "detected_at > TIMESTAMP'2026-01-01'": "detected_at",
    "sum(amount) FILTER (WHERE kind = 'w') > 1": "amount kind",
}


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_conditions_are_expressions_over_the_rows_of_one_firing(
    analyst: DeltaAnalyst, text: str
) -> None:
    assert ask(analyst, text).columns == set(EXPRESSIONS[text].split())


EXPRESSIONS_REFUSED = {
    "amount > 3": ("sql-analysis", "a bare name is for key columns"),
    "sum(amount)": ("sql-type", "the condition is double, not boolean"),
    "sum(nope) > 1": ("sql-analysis", "row before is `old`) and firing_id, event_type"),
    "sum(amount) > 1 AS x": ("sql-alias", "AS x"),
    "sum(amount) > 1; DROP TABLE alerts": ("sql-syntax", "';'"),
    "sum(amount) > 1;": ("sql-syntax", "leave the ; out"),
    "sum(amount) > 1 OR EXISTS (SELECT 1 FROM accounts)": ("sql-subquery", "subquery"),
    "account IN (SELECT account FROM accounts)": ("sql-subquery", "if: {sql: SELECT ..}"),
    "sum(amount) > (SELECT 1)": ("sql-subquery", "subquery"),
    "rand() > 0.5": ("sql-nondeterministic", "rand(..)"),
    "uuid() = 'x'": ("sql-nondeterministic", "uuid(..)"),
    "current_timestamp > detected_at": ("sql-nondeterministic", "detected_at is the time to use"),
    "now() > detected_at": ("sql-nondeterministic", "now(..)"),
    "current_date() > DATE'2026-01-01'": ("sql-nondeterministic", "current_date(..)"),
    "reflect('java.lang.System', 'getenv') = 'x'": ("sql-function", "reflect"),
    "explode(array(true))": ("sql-kind", "window functions"),
    "row_number() OVER (ORDER BY account) > 1": ("sql-kind", "window functions"),
    ":account > 1": ("sql-parameter", ":account"),
}


@pytest.mark.parametrize("text", EXPRESSIONS_REFUSED)
def test_g25_g27_expressions_refused(analyst: DeltaAnalyst, text: str) -> None:
    code, said = EXPRESSIONS_REFUSED[text]
    with pytest.raises(InputError) as refused:
        ask(analyst, text)
    (problem,) = refused.value.problems
    assert problem.code == code
    assert said in str(problem)


def test_g31_a_condition_may_query_declared_tables(analyst: DeltaAnalyst) -> None:
    text = "SELECT firing_id FROM event JOIN accounts USING (account) WHERE blocked"
    reading = ask(analyst, text, query=True)
    assert reading.columns == {"firing_id", "account"}
    assert reading.tables == {"accounts"}


QUERIES_REFUSED = {
    "SELECT firing_id FROM event JOIN gate.accounts USING (account)": ("sql-table", "unqualified"),
    "SELECT firing_id FROM event, text.`/etc/passwd`": ("sql-path", "reads a path"),
    "SELECT firing_id FROM event, accounts VERSION AS OF 0": ("sql-kind", "VERSION AS OF"),
    "SELECT account FROM event": ("sql-result", "no column firing_id"),
    "INSERT INTO alerts SELECT 1, 'x'": ("sql-kind", "is no condition"),
    "WITH x AS (SELECT 1) INSERT INTO alerts SELECT 1, 'x' FROM x": ("sql-kind", "refused"),
    "SET a = 1": ("sql-kind", "SET is no condition"),
}


@pytest.mark.parametrize("text", QUERIES_REFUSED)
def test_g31_queries_refused(analyst: DeltaAnalyst, text: str) -> None:
    code, said = QUERIES_REFUSED[text]
    with pytest.raises(InputError) as refused:
        ask(analyst, text, query=True)
    (problem,) = refused.value.problems
    assert problem.code == code
    assert said in str(problem)


def test_fields_of_signals_are_cast_to_the_declared_types(analyst: DeltaAnalyst) -> None:
    fields = SignalAction("noticed", {"account": "account", "total": "sum(amount)"}, HERE)
    types = {"account": "bigint", "total": "decimal(12,2)"}
    assert analyst.fields(rule(), fields, EVENT, PER_FIRING, types).columns == {"account", "amount"}
    with pytest.raises(InputError, match="CAST"):
        analyst.fields(rule(), fields, EVENT, PER_FIRING, {**types, "account": "array<int>"})


def test_a_text_is_analysed_once(analyst: DeltaAnalyst) -> None:
    text = "INSERT INTO alerts SELECT account, 'once' FROM event"
    assert action(analyst, text) is action(analyst, text)
    other = "INSERT INTO alerts SELECT account, 'p_r' FROM event"
    assert action(analyst, other) is not action(analyst, text)
