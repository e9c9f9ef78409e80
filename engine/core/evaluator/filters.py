"""A `where` that Arrow decides (G30)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.engine.core.evaluator.forms import Reader, read_tree
from tidegate.engine.core.evaluator.nodes import (
    JOINED_BYTES_MAX,
    Mask,
    Node,
    OutsideError,
    RaisingError,
    Rows,
    column_types,
    named_columns,
)
from tidegate.engine.core.parameters import OLD
from tidegate.engine.core.types.spark import arrow_schema, plain_columns


class Filter:
    """A predicate that Arrow may decide. `text` is its normal form: equal texts, equal filters.

    `columns` are the names that it reads: `x` (`new.x` is the same), or `old.x`.
    """

    def __init__(self, node: Node) -> None:
        self.text = node.text
        self.columns = node.columns
        self._node = node

    def run(self, columns: Mapping[str, pa.ChunkedArray]) -> Mask:
        """Which rows the predicate is true of (false and null alike are not).

        Raises UndecidedError if Spark must decide these rows: it may raise on one of them."""
        found = [self._held(part) for part in _parts(columns)]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def decide(self, columns: Mapping[str, pa.ChunkedArray]) -> pa.ChunkedArray:
        """As `engine.core.ports.ReadRequest.where`: true; false, also if the predicate is null;
        null where it raises. Rows on which it raises are found by halving.

        Raises UndecidedError if Spark must decide one of the rows."""
        found = [decided for part in _parts(columns) for decided in self._decided(part)]
        return pa.chunked_array(found, pa.bool_())

    def _held(self, rows: pa.Table | pa.RecordBatch) -> Mask:
        columns = Rows({name: rows[name] for name in self.columns}, rows.num_rows)
        held = self._node.run(columns).fill_null(False)
        return np.asarray(held.to_numpy(zero_copy_only=False), np.bool_)

    def _decided(self, rows: pa.Table | pa.RecordBatch) -> Iterator[pa.Array]:
        try:
            yield pa.array(self._held(rows))
        except RaisingError:
            if rows.num_rows == 1:
                yield pa.nulls(1, pa.bool_())
                return
            half = rows.num_rows // 2
            yield from self._decided(rows.slice(0, half))
            yield from self._decided(rows.slice(half))


def compile_filter(text: str, types: Mapping[str, pa.DataType]) -> Filter | None:
    """The filter that `text` is over columns of these types, or None if Spark must decide it.

    `types` are by name, pre-images as `old.x`; where there are any, `new.x` is `x`. Case does not
    matter.
    """
    try:
        node = Reader(types).node(read_tree(text))
    except OutsideError:
        return None
    return Filter(node) if node.kind == pa.bool_() and not node.is_literal else None


def decide(where: Mapping[str, str], rows: pa.Table) -> pa.Table | None:
    """Decide predicates over rows at hand, as `engine.core.ports.Feed.decide`; None if one of them
    is outside the list. Where the rows have a struct `old`, predicates may name `old.x`, `new.x`.

    Example: {"big": "amount > 100"} over amounts 5, 700 -> big: false, true.
    Raises UndecidedError if Spark must decide one of the rows."""
    columns = named_columns(rows)
    found = {}
    for name, text in where.items():
        known = filter_over(text, rows.schema)
        if known is None:
            return None
        found[name] = known.decide({n: columns[n] for n in known.columns})
    return pa.table(found)


def held_by_any(filters: Sequence[Filter], rows: pa.Table) -> pa.Table:
    """The rows of which one of the filters is true or raises; all if there are none. Raises
    UndecidedError if Spark must decide one of the rows."""
    found = [one.decide({name: rows[name] for name in one.columns}) for one in filters]
    return rows.filter(reduce(pc.or_, [one.fill_null(True) for one in found])) if found else rows


@lru_cache(maxsize=1024)
def filter_over(text: str, schema: pa.Schema) -> Filter | None:
    """The filter that `text` is over tables of this schema, or None if Spark must decide it."""
    return compile_filter(text, column_types(schema))


def filter_types(schema_json: str, images: bool) -> dict[str, pa.DataType]:
    """The columns that a filter on Arrow may read (G30), pre-images too if the rows have them."""
    plain = plain_columns(schema_json)
    types = {f.name: f.type for f in arrow_schema(schema_json) if f.name in plain}
    return {**types, **{f"{OLD}.{n}": t for n, t in types.items()}} if images else types


def _parts(columns: Mapping[str, pa.ChunkedArray]) -> Sequence[pa.Table | pa.RecordBatch]:
    table = pa.table(dict(columns))
    return [table] if table.nbytes < JOINED_BYTES_MAX else table.to_batches()
