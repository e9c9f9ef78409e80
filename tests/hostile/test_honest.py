"""What honest rulebooks say is let in (G27)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.hostile.conftest import Judge, honest
from tidegate.connectors.delta.functions import FUNCTIONS, TABLE_FUNCTIONS
from tidegate.connectors.delta.nodes import PARSED_VALUES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.long
def test_g27_honest_texts_are_let_in(judge: Judge) -> None:
    texts = honest()
    assert len(texts) >= 200
    refused = []
    for place, text in texts:
        problem = judge(place, text)
        # The instants of time travels are outside the history of tables made a moment ago.
        if problem and "DELTA_TIMESTAMP" not in problem.message:
            refused.append(f"{text}\n    {problem}")
    assert not refused, "\n".join(refused)


@pytest.mark.long
def test_g27_every_function_of_the_list_is_let_in_as_spark_itself_shows_it(
    judge: Judge, spark: SparkSession
) -> None:
    jvm = spark._jvm
    assert jvm is not None
    registry = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    refused, tried = [], set()
    for name in sorted(FUNCTIONS):
        identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name)
        info = registry.lookupFunction(identifier).get()
        for query in re.findall(r"^\s*> (SELECT .*?);\s*$", info.getExamples() or "", re.M | re.S):
            text = f"INSERT INTO alerts SELECT 1, 'x' FROM ({query})"
            problem = judge("action", text)
            if problem is None:
                tried.add(name)
            elif problem.code in ("sql-kind", "sql-path"):
                refused.append(f"{text}\n    {problem}")
            elif problem.code == "sql-function":
                named = re.findall(r"the function (\S+)\(", problem.message)
                if not named or named[0] in FUNCTIONS | TABLE_FUNCTIONS:
                    refused.append(f"{text}\n    {problem}")
    assert not refused, "\n".join(refused)
    assert len(tried) > 0.85 * len(FUNCTIONS)


def test_values_that_nodes_may_hold_hold_no_nodes(judge: Judge) -> None:
    """Nothing that is allowed to be left unentered is a collection or a product."""
    for name in PARSED_VALUES:
        loaded = judge.spark._jvm.java.lang.Class.forName(name)  # type: ignore[union-attr]
        parents = {str(loaded.getName())}
        while loaded is not None:
            parents |= {str(each.getName()) for each in loaded.getInterfaces()}
            loaded = loaded.getSuperclass()
        assert not parents & {"scala.Product", "scala.collection.Iterable"}
