"""An expression `if` that Arrow decides: over the rows of each firing (G30).

Example: `sum(amount) > 1000 AND count(*) >= 3`. Spark's own way is GROUP BY firing_id HAVING.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from sqlglot import exp

from tidegate.engine.core.evaluator.aggregates import AGGREGATES, Aggregate, Groups, aggregate
from tidegate.engine.core.evaluator.forms import Form, Reader, only, read_tree
from tidegate.engine.core.evaluator.nodes import (
    JOINED_BYTES_MAX,
    Node,
    OutsideError,
    Rows,
    UndecidedError,
    column,
)
from tidegate.engine.core.parameters import OLD

_EVERY = "count(*)"
_FIRING = "firing_id"


class FiringExpression:
    """An expression over the rows of each firing that Arrow may decide."""

    def __init__(self, node: Node, aggregates: Mapping[str, Aggregate]) -> None:
        self._node = node
        self._aggregates = aggregates

    def held(self, relation: pa.Table) -> frozenset[str]:
        """The ids of the firings of which it is true. Raises UndecidedError if Spark must say."""
        ids, values = self.values(relation)
        return frozenset(ids.filter(values.fill_null(False)).to_pylist())

    def values(self, relation: pa.Table) -> tuple[pa.Array, pa.Array]:
        """The ids of the firings, and the expression's value for each."""
        if relation.nbytes > JOINED_BYTES_MAX:
            raise UndecidedError
        ids = relation[_FIRING].combine_chunks().dictionary_encode()
        codes = ids.indices.to_numpy().astype(np.int64)
        groups = Groups(codes, len(ids.dictionary))
        rows = Rows(dict(_columns(relation)), relation.num_rows)
        found: dict[str, pa.Array] = {_EVERY: pa.array(groups.sizes())}
        for name in self._node.columns - found.keys():
            if name in self._aggregates:
                one = self._aggregates[name]
                found[name] = one.kernel(groups, one.part.run(rows))
            else:
                found[name] = rows[name].take(pa.array(groups.first))
        return ids.dictionary, self._node.run(Rows(found, groups.count))


@lru_cache(maxsize=1024)
def compile_condition(
    text: str, schema: pa.Schema, per_firing: Collection[str]
) -> FiringExpression | None:
    """The condition that `text` is over relations of this schema, or None if Spark must decide it.

    `per_firing`: the columns with one value a firing, which it may name outside aggregates.
    """
    reader = FiringReader(dict(_types(schema)), {_FIRING, *per_firing})
    try:
        node = reader.node(read_tree(text))
    except OutsideError:
        return None
    if node.kind != pa.bool_() or node.is_literal:
        return None
    return FiringExpression(node, reader.aggregates)


class FiringReader(Reader):
    """Reads aggregates too. An aggregate is a column to what is around it."""

    def __init__(self, kinds: Mapping[str, pa.DataType], per_firing: Collection[str]) -> None:
        super().__init__({name: kinds[name] for name in per_firing})
        self._rows = Reader(kinds)
        self.aggregates: dict[str, Aggregate] = {}

    def form(self, tree: exp.Expr) -> Form | None:
        return self._aggregated if type(tree) in AGGREGATES else super().form(tree)

    def _aggregated(self, _: Reader, tree: exp.Expr) -> Node:
        only(tree, "this")
        argument = tree.this
        if isinstance(tree, exp.Count) and isinstance(argument, exp.Star | exp.Literal):
            return column(_EVERY, pa.int64())
        found = aggregate(type(tree), self._rows.node(argument))
        self.aggregates[found.text] = found
        return column(found.text, found.kind)


def _types(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    for field in schema:
        yield field.name, field.type
        if field.name == OLD and types.is_struct(field.type):
            yield from ((f"{OLD}.{inner.name}", inner.type) for inner in field.type)


def _columns(relation: pa.Table) -> Iterator[tuple[str, pa.ChunkedArray]]:
    for name, _ in _types(relation.schema):
        whole, _, inner = name.partition(".")
        nested = inner and whole == OLD and name not in relation.column_names
        yield name, pc.struct_field(relation[OLD], inner) if nested else relation[name]
