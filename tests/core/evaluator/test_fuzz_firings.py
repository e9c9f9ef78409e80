"""Expressions over firings against Spark: drawn ones, over drawn rows, of all types (G30)."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from tests.core.evaluator.drawn import ROWS, TEXTS, Drawer, rows, same
from tidegate.engine.core.evaluator.firings import FiringExpression, FiringReader
from tidegate.engine.core.evaluator.forms import read_tree
from tidegate.engine.core.evaluator.nodes import OutsideError, UndecidedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("batches", [1, pytest.param(50, marks=pytest.mark.long)])
def test_g30_expressions_over_firings_agree_with_spark(spark: SparkSession, batches: int) -> None:
    rng = random.Random(60 + batches)
    drawn = decided = 0
    for _ in range(batches):
        drawer, table = Drawer(rng, firing=True), rows(rng, ROWS)
        k = pa.array(sorted(rng.randrange(8) for _ in range(ROWS)), pa.int64())
        relation = table.append_column("k", k).append_column("firing_id", k.cast(pa.string()))
        texts = dict.fromkeys(drawer.any() for _ in range(TEXTS))
        found = {}
        for text in texts:
            if (expression := of_firings(text, relation.schema)) is not None:
                try:
                    found[text] = expression.values(relation)
                except UndecidedError:
                    continue
        drawn, decided = drawn + len(texts), decided + len(found)
        frame = spark.createDataFrame(relation).groupBy("firing_id", "k")
        columns = [F.expr(text).alias(str(n)) for n, text in enumerate(found)]
        said = frame.agg(F.count("*").alias("rows"), *columns).toArrow().sort_by("firing_id")
        for n, (text, (ids, values)) in enumerate(found.items()):
            theirs = said.column(str(n))
            assert theirs.type == values.type, (text, theirs.type, values.type)
            assert ids.to_pylist() == said["firing_id"].to_pylist()
            pairs = zip(ids.to_pylist(), values.to_pylist(), theirs.to_pylist(), strict=True)
            wrong = [pair for pair in pairs if not same(*pair[1:])]
            assert not wrong, (text, wrong)
    print(f"{drawn} expressions over firings, {decided} decided")
    assert decided * 2 >= drawn, (drawn, decided)


def of_firings(text: str, schema: pa.Schema) -> FiringExpression | None:
    types = {field.name: field.type for field in schema}
    reader = FiringReader(types, ("firing_id", "k"))
    try:
        node = reader.node(read_tree(text))
    except OutsideError:
        return None
    return None if node.is_literal else FiringExpression(node, reader.aggregates)
