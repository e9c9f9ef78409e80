"""Expressions and fields over firings against Spark: drawn ones, over drawn rows (G30)."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from tests.core.evaluator.drawn import CASTS, ROWS, TEXTS, Drawer, rows, same
from tidegate.engine.core.evaluator.firings import (
    FiringExpression,
    FiringReader,
    compile_fields,
)
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


@pytest.mark.parametrize("batches", [1, pytest.param(50, marks=pytest.mark.long)])
def test_g30_fields_agree_with_spark(spark: SparkSession, batches: int) -> None:
    rng = random.Random(90 + batches)
    drawn = decided = 0
    for _ in range(batches):
        drawer, table = Drawer(rng, firing=True), rows(rng, ROWS)
        k = pa.array(sorted(rng.randrange(8) for _ in range(ROWS)), pa.int64())
        signed = pa.array([-0.0 if one % 2 else 1.5 for one in k.to_pylist()])
        relation = table.append_column("k", k).append_column("y", signed)
        relation = relation.append_column("firing_id", k.cast(pa.string()))
        texts = [drawer.any() for _ in range(TEXTS)] + ["y", "k", "'a'", "2.5", "firing_id", "7"]
        fields, casts = {str(n): text for n, text in enumerate(texts)}, {}
        said = {}
        for name, text in fields.items():
            if rng.random() < 0.3:
                casts[name] = rng.choice([*CASTS, "boolean", "date"])
            found = compile_fields({name: text}, casts, relation.schema, ("k", "y"))
            with suppress(UndecidedError):
                said |= {} if found is None else {name: found.values(relation)}
        drawn, decided = drawn + len(texts), decided + len(said)
        columns = {n: F.expr(fields[n]) for n in said}
        columns = {n: c.cast(casts[n]) if n in casts else c for n, c in columns.items()}
        frame = spark.createDataFrame(relation).groupBy("firing_id", "k", "y")
        frame = frame.agg(F.count("*").alias("rows"), *(c.alias(n) for n, c in columns.items()))
        theirs = frame.toArrow().sort_by("firing_id")
        for name, ours in said.items():
            assert ours.column_names == ["firing_id", name]
            assert ours["firing_id"].to_pylist() == theirs["firing_id"].to_pylist()
            assert ours.schema.field(name).type == theirs.schema.field(name).type, fields[name]
            pairs = zip(ours[name].to_pylist(), theirs[name].to_pylist(), strict=True)
            wrong = [pair for pair in pairs if not same(*pair)]
            assert not wrong, (fields[name], casts.get(name), wrong)
    print(f"{drawn} fields, {decided} decided")
    assert decided * 4 >= drawn, (drawn, decided)


def of_firings(text: str, schema: pa.Schema) -> FiringExpression | None:
    types = {field.name: field.type for field in schema}
    reader = FiringReader(types, ("firing_id", "k"))
    try:
        node = reader.node(read_tree(text))
    except OutsideError:
        return None
    return None if node.is_literal else FiringExpression(node, reader.aggregates)
