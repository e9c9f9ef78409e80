"""A `where` that Arrow decides (G30)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tidegate.engine.core.evaluator.forms import Reader, read_tree
from tidegate.engine.core.evaluator.nodes import JOINED_BYTES_MAX, Mask, Node, OutsideError, Rows
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
        table = pa.table(dict(columns))
        parts = [table] if table.nbytes < JOINED_BYTES_MAX else table.to_batches()
        found = [self._held(Rows({n: p[n] for n in columns}, p.num_rows)) for p in parts]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _held(self, rows: Rows) -> Mask:
        held = self._node.run(rows).fill_null(False)
        return np.asarray(held.to_numpy(zero_copy_only=False), np.bool_)


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


def filter_types(schema_json: str, images: bool) -> dict[str, pa.DataType]:
    """The columns that a filter on Arrow may read (G30), pre-images too if the rows have them."""
    plain = plain_columns(schema_json)
    types = {f.name: f.type for f in arrow_schema(schema_json) if f.name in plain}
    return {**types, **{f"{OLD}.{n}": t for n, t in types.items()}} if images else types
