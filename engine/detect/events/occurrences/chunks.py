"""A column in one piece."""

from __future__ import annotations

import pyarrow as pa


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The values of a column; Arrow copies them even where they stand in one chunk."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
