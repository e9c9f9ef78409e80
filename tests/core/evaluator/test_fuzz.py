"""The evaluator against Spark: drawn expressions over drawn rows, of all types (G30)."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from tests.core.evaluator.drawn import ROWS, TEXTS, TYPES, Drawer, rows, same
from tidegate.connectors.delta.plans import tried
from tidegate.engine.core.evaluator.filters import decide
from tidegate.engine.core.evaluator.forms import Reader, read_tree
from tidegate.engine.core.evaluator.nodes import Node, OutsideError, Rows, UndecidedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def node_of(text: str) -> Node | None:
    try:
        node = Reader(TYPES).node(read_tree(text))
    except OutsideError:
        return None
    return None if node.is_literal else node


def evaluated(node: Node, table: pa.Table, at: np.ndarray) -> list[tuple[int, Any]]:
    """The rows `at` that a node decides, with its values: the others are found by halving."""
    some = table.take(pa.array(at))
    try:
        values = node.run(Rows({n: some[n] for n in some.column_names}, len(at)))
    except UndecidedError:
        if len(at) == 1:
            return []
        half = len(at) // 2
        return evaluated(node, table, at[:half]) + evaluated(node, table, at[half:])
    assert values.type == node.kind
    return list(zip(at.tolist(), values.to_pylist(), strict=True))


@pytest.mark.parametrize("batches", [1, pytest.param(50, marks=pytest.mark.long)])
def test_g30_expressions_agree_with_spark(spark: SparkSession, batches: int) -> None:
    rng = random.Random(30 + batches)
    drawn = inside = decided = 0
    for _ in range(batches):
        drawer, table = Drawer(rng), rows(rng, ROWS)
        texts = [drawer.any() for _ in range(TEXTS)]
        found: dict[str, tuple[Node, list[tuple[int, Any]]]] = {}
        for text in texts:
            node = node_of(text)
            if node is not None:
                found[text] = node, evaluated(node, table, np.arange(ROWS))
        drawn += len(texts) * ROWS
        inside += len(found) * ROWS
        decided += sum(len(values) for _, values in found.values())
        said = asked(spark, table, {text: [at for at, _ in v] for text, (_, v) in found.items()})
        for n, (text, (node, values)) in enumerate(found.items()):
            theirs = said.column(str(n))
            assert theirs.type == node.kind, (text, theirs.type, node.kind)
            wrong = [
                (table.slice(at, 1).to_pylist()[0], value, theirs[at].as_py())
                for at, value in values
                if not same(value, theirs[at].as_py())
            ]
            assert not wrong, (text, node.text, wrong[:3])
    print(f"{drawn} pairs, {inside} inside the list, {decided} decided")
    assert decided * 2 >= drawn, (drawn, inside, decided)


@pytest.mark.parametrize("batches", [1, pytest.param(50, marks=pytest.mark.long)])
def test_g25_predicates_agree_with_spark(spark: SparkSession, batches: int) -> None:
    """True, false, or null where they raise, row by row."""
    rng = random.Random(25 + batches)
    decided = raised = 0
    for _ in range(batches):
        drawer, table = Drawer(rng), rows(rng, ROWS, usual=0.4)
        said = {}
        drawn = [drawer.of("boolean", 3) for _ in range(TEXTS)]
        for n, text in enumerate([*drawn, "i + j > 0 or b", "b and tiny * tiny > j"]):
            with suppress(UndecidedError):
                found = decide({str(n): text}, table)
                said |= {text: found[str(n)]} if found is not None else {}
        columns = [tried(spark, text).alias(str(n)) for n, text in enumerate(said)]
        theirs = spark.createDataFrame(table).select(*columns).toArrow()
        for n, (text, ours) in enumerate(said.items()):
            assert ours.to_pylist() == theirs[str(n)].to_pylist(), text
            decided, raised = decided + ROWS, raised + ours.null_count
    print(f"{decided} pairs decided, {raised} of them raise")
    assert raised


def asked(spark: SparkSession, table: pa.Table, texts: dict[str, list[int]]) -> pa.Table:
    """Spark's values of each text, in the rows named. It must not raise on one of them."""
    numbered = table.append_column("row", pa.array(range(table.num_rows), pa.int64()))
    frame = spark.createDataFrame(numbered)
    every = list(range(table.num_rows))
    shown = [
        text if at == every else f"if(row in ({', '.join(map(str, at)) or 'null'}), {text}, null)"
        for text, at in texts.items()
    ]
    return frame.selectExpr(*(f"{text} AS `{n}`" for n, text in enumerate(shown))).toArrow()
