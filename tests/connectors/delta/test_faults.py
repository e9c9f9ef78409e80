"""What is told of Spark's errors: names and SQL text, never a value of a table."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.support.lake import Lake
from tidegate import rules
from tidegate.connectors.delta.catalog import Catalog
from tidegate.connectors.delta.faults import (
    SPARK_ERRORS,
    Fault,
    check_alive,
    fault,
    is_lost,
    why_lost,
)
from tidegate.rules.errors import EngineError, InputError

VALUE = "geheim"


def raised(spark: SparkSession, text: str) -> Fault:
    with pytest.raises(SPARK_ERRORS) as caught:
        spark.sql(text).collect()
    return fault(caught.value)


@pytest.mark.parametrize(
    ("text", "condition", "says"),
    [
        ("cast(x AS INT)", "CAST_INVALID_INPUT", "The value <expression> of the type"),
        ("to_date(x, 'yyyy')", "CANNOT_PARSE_TIMESTAMP", "Use <func> to tolerate"),
        ("raise_error(x)", "USER_RAISED_EXCEPTION", "<errorMessage>"),
        ("parse_url(concat(x, ' '), 'HOST')", "INVALID_URL", "The url is invalid: <url>"),
        ("cast(length(x) + 4705 AS DECIMAL(2))", "NUMERIC_VALUE_OUT_OF_RANGE", "<value> cannot be"),
        ("array(1)[length(x) + 4705]", "INVALID_ARRAY_INDEX", "The index <indexValue>"),
        ("1 / (length(x) - 6)", "DIVIDE_BY_ZERO", "Division by zero"),
        ("nope", "UNRESOLVED_COLUMN", "with name `nope` cannot be resolved"),
    ],
)
def test_messages_hold_no_values(spark: SparkSession, text: str, condition: str, says: str) -> None:
    found = raised(spark, f"SELECT {text} FROM VALUES ('{VALUE}') AS v(x)")
    assert found.condition.startswith(condition)
    assert says in found.message
    assert "\n" not in found.message
    for value in (VALUE, "4711"):
        assert value not in found.message
        assert (
            value in found.details
            or condition in ("DIVIDE_BY_ZERO", "UNRESOLVED_COLUMN")
            or (value == ("4711" if "4705" not in text else VALUE))
        )


def test_the_part_of_the_statement_that_failed_is_told(spark: SparkSession) -> None:
    found = raised(spark, f"SELECT 1 AS a, cast(x AS INT) FROM VALUES ('{VALUE}') AS v(x)")
    assert found.message.endswith("(in `cast(x AS INT)`)")
    assert found.offset == 15


def test_a_constraint_is_named_and_its_row_is_not_shown(lake: Lake) -> None:
    lake.create("t", "a INT, b STRING")
    lake.sql("ALTER TABLE {t} ADD CONSTRAINT small CHECK (a < 10)")
    with pytest.raises(SPARK_ERRORS) as caught:
        lake.sql(f"INSERT INTO {{t}} VALUES (4711, '{VALUE}')")
    found = fault(caught.value)
    assert found.condition == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert found.message.endswith("CHECK constraint small (a < 10) violated")
    assert "4711" not in found.message
    assert "4711" in found.details


def test_what_the_machine_says_of_its_disk_is_told_without_the_path(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    full = jvm.java.io.IOException(f"/lake/name={VALUE}/part-0 (No space left on device)")
    errors = jvm.org.apache.spark.sql.errors.QueryExecutionErrors
    failed = errors.taskFailedWhileWritingRowsError(f"/lake/name={VALUE}", full)
    found = fault(Py4JJavaError("a task failed", failed))
    assert found.condition == "TASK_WRITE_FAILED"
    assert found.message.endswith("<path>.: No space left on device")
    assert VALUE not in found.message


@pytest.mark.long
def test_a_table_is_named_as_the_user_names_it(spark: SparkSession, lake: Lake) -> None:
    lake.create("t", "a INT")
    book = "rulebook: shop\ntables: {orders: {path: @}}\n".replace("@", lake.path("t"))
    catalog = Catalog(spark, rules.load(book + "events: {e: {signal: {}}}\n"), "ab12", 7)
    catalog.open()
    with catalog.session() as session:
        for text in ("SELECT b FROM orders", "INSERT INTO orders SELECT 'x', 2"):
            found = raised(session, text)
            assert "orders" in found.details
            assert "tidegate_" not in found.details + found.message + found.line, text
    catalog.close()


@pytest.mark.parametrize("name", ["nope.orders", "lasting.nope.orders", "nope"])
def test_a_table_that_does_not_resolve_names_the_catalog_in_memory(
    spark: SparkSession, name: str
) -> None:
    book = f"rulebook: shop\ntables: {{t: {{table: {name}}}}}\nevents: {{e: {{signal: {{}}}}}}\n"
    with pytest.raises(InputError, match=f"table t: Spark's catalog knows no {name}") as caught:
        Catalog(spark, rules.load(book), "ab12", 8).open()
    assert "--spark-conf spark.sql.catalogImplementation=hive" in str(caught.value)


def test_a_java_that_has_ended_is_no_fault_of_what_was_asked_of_it(spark: SparkSession) -> None:
    assert why_lost(spark) is None
    refused = ConnectionRefusedError("refused")
    assert isinstance(refused, SPARK_ERRORS)
    assert is_lost(refused)
    with pytest.raises(EngineError, match="Spark is gone: refused") as lost:
        check_alive(refused)
    assert lost.value.code == "spark-lost"
