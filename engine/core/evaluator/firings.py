"""Expressions over the rows of each firing that Arrow decides: an `if`, and the fields of signals
and webhooks (G30).

Example: `sum(amount) > 1000 AND count(*) >= 3`. Spark's own way is GROUP BY firing_id HAVING.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tidegate.engine.core.evaluator.aggregates import AGGREGATES, Aggregate, Groups, aggregate
from tidegate.engine.core.evaluator.casts import field_cast
from tidegate.engine.core.evaluator.forms import Form, Reader, only, read_tree
from tidegate.engine.core.evaluator.kinds import is_float
from tidegate.engine.core.evaluator.nodes import (
    JOINED_BYTES_MAX,
    Node,
    OutsideError,
    Rows,
    UndecidedError,
    column,
    column_types,
    named_columns,
)
from tidegate.engine.core.types.spark import arrow_type

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
        firings = _Firings(relation)
        return firings.ids, self.of(firings)

    def of(self, firings: _Firings) -> pa.Array:
        """Its value for each firing."""
        needed = (n for n in self._node.columns if n != _EVERY)
        found = {name: firings.column(name, self._aggregates.get(name)) for name in needed}
        found[_EVERY] = firings.sizes
        values = self._node.run(Rows(found, len(firings.ids)))
        return pa.repeat(values, len(firings.ids)) if isinstance(values, pa.Scalar) else values


class FiringFields:
    """Fields over the rows of each firing that Arrow may decide, all of them."""

    def __init__(self, fields: Mapping[str, FiringExpression]) -> None:
        self._fields = fields

    def values(self, relation: pa.Table) -> pa.Table:
        """A row a firing: `firing_id`, then the fields in their order. Raises UndecidedError if
        Spark must say."""
        firings = _Firings(relation)
        columns = [field.of(firings) for field in self._fields.values()]
        return pa.table([firings.ids, *columns], names=[_FIRING, *self._fields])


class _Firings:
    """The rows of a relation by firing. `ids`: the firings in the order in which they appear."""

    def __init__(self, relation: pa.Table) -> None:
        if relation.nbytes > JOINED_BYTES_MAX:
            raise UndecidedError
        ids = relation[_FIRING].combine_chunks().dictionary_encode()
        self.ids: pa.Array = ids.dictionary
        self._groups = Groups(ids.indices.to_numpy().astype(np.int64), len(ids.dictionary))
        self._rows = Rows(named_columns(relation), relation.num_rows)

    @property
    def sizes(self) -> pa.Array:
        """How many rows each firing has."""
        return pa.array(self._groups.sizes())

    def column(self, name: str, known: Aggregate | None) -> pa.Array:
        """An aggregate, or without one the column of that name, which has one value a firing."""
        if known is not None:
            return known.kernel(self._groups, known.part.run(self._rows))
        values = self._rows[name].take(pa.array(self._groups.first))
        return pc.add(values, pa.scalar(0, values.type)) if is_float(values.type) else values


@lru_cache(maxsize=1024)
def compile_condition(
    text: str, schema: pa.Schema, per_firing: Collection[str]
) -> FiringExpression | None:
    """The condition that `text` is over relations of this schema, or None if Spark must decide it.

    `per_firing`: the columns with one value a firing, which it may name outside aggregates.
    """
    reader = FiringReader(column_types(schema), {_FIRING, *per_firing})
    try:
        node = reader.node(read_tree(text))
    except OutsideError:
        return None
    if node.kind != pa.bool_() or node.is_literal:
        return None
    return FiringExpression(node, reader.aggregates)


def compile_fields(
    fields: Mapping[str, str],
    casts: Mapping[str, str],
    schema: pa.Schema,
    per_firing: Iterable[str],
) -> FiringFields | None:
    """The fields of a signal or webhook over relations of this schema, or None if Spark must
    evaluate one of them. `casts`: the Spark types that fields are cast to. `per_firing`: as in
    `compile_condition`."""
    found: dict[str, FiringExpression] = {}
    for name, text in fields.items():
        field = _compile_field(text, casts.get(name), schema, tuple(per_firing))
        if field is None:
            return None
        found[name] = field
    return FiringFields(found)


@lru_cache(maxsize=1024)
def _compile_field(
    text: str, kind: str | None, schema: pa.Schema, per_firing: Collection[str]
) -> FiringExpression | None:
    reader = FiringReader(column_types(schema), {_FIRING, *per_firing})
    try:
        node = reader.node(read_tree(text))
        node = node if kind is None else field_cast(node, arrow_type(kind))
    except (OutsideError, ValueError):
        return None
    return FiringExpression(node, reader.aggregates)


class FiringReader(Reader):
    """Reads aggregates too. An aggregate is a column to what is around it."""

    def __init__(self, kinds: Mapping[str, pa.DataType], per_firing: Collection[str]) -> None:
        super().__init__({name: kinds[name] for name in per_firing if name in kinds})
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
