"""What is known of Spark's functions without Spark is what this Spark says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.connectors.delta.functions import FUNCTIONS, TABLE_FUNCTIONS
from tidegate.rules.sql.statement import functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def listed(spark: SparkSession) -> list[str]:
    """The lines of rules/sql/functions.txt: write them there where another Spark has others."""
    names = [row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()]
    known = spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()
    groups = {info.getName(): info.getGroup() for info in known}
    return [f"{name} {groups.get(name) or '-'}" for name in sorted(names)]


def test_the_list_of_functions_is_sparks(spark: SparkSession) -> None:
    grammars = {"identifier", "timestampadd", "timestampdiff", "try_cast"}
    mine = functions().items()
    assert [f"{n} {group}" for n, group in sorted(mine) if n not in grammars] == listed(spark)


def test_what_the_gate_lets_in_is_known() -> None:
    assert functions().keys() >= FUNCTIONS | TABLE_FUNCTIONS
