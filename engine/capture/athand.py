"""What a `where` says of rows that are at hand: signals, and the commits of a table.

Arrow decides the common forms (G30), Spark the others: one job for the rows of an event type.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.filters import Filter, compile_filter
from tidegate.engine.ports import Feed

Bools = npt.NDArray[np.bool_]
_HELD = "_tidegate_held"


def held(where: str | None, rows: pa.Table, feed: Feed) -> tuple[Bools, Bools]:
    """Of which rows a predicate is true, and on which it raises (G25)."""
    none = np.zeros(rows.num_rows, np.bool_)
    if where is None or not rows.num_rows:
        return ~none, none
    known = _filter(where, rows.schema)
    if known is not None:
        return known.run({name: rows.column(name) for name in known.columns}), none
    answer = feed.decide(rows, {_HELD: where}).column(_HELD)
    return answer.fill_null(False).to_numpy(), answer.is_null().to_numpy()


@lru_cache
def _filter(where: str, schema: pa.Schema) -> Filter | None:
    return compile_filter(where, {field.name: field.type for field in schema})
