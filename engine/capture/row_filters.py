"""Decides a `where` over rows at hand: signals, and the commits of a table.

Arrow decides the common forms (G30). Spark decides the others, and rows that a checked form cannot
decide, in one job an event type.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.engine.core.evaluator.filters import filter_over
from tidegate.engine.core.evaluator.nodes import UndecidedError, named_columns
from tidegate.engine.core.ports import WHY, Feed
from tidegate.engine.core.text.times import python_rows
from tidegate.engine.core.values import Int64, Rejected

Bools = npt.NDArray[np.bool_]
Undecided = list[tuple[Int64, str]]
"""Row numbers, and the reason why a predicate could not decide them: "" if it raised, else a colon
and what happened."""
_HELD = "_tidegate_held"


def held(where: str | None, rows: pa.Table, feed: Feed, source: str) -> tuple[Bools, Undecided]:
    """Whether the predicate is true, for each row; and the rows that it could not decide, by reason
    (G25). `source`: see `Feed.decide`."""
    every = np.ones(rows.num_rows, np.bool_)
    if where is None or not rows.num_rows:
        return every, []
    known = filter_over(where, rows.schema)
    if known is not None:
        with suppress(UndecidedError):
            columns = named_columns(rows)
            return known.run({name: columns[name] for name in known.columns}), []
    said = feed.decide(rows, {_HELD: where}, source)
    answer = said.column(_HELD)
    undecided = np.flatnonzero(answer.is_null().to_numpy())
    return answer.fill_null(False).to_numpy(), reasons(said, _HELD, undecided)


def reasons(said: pa.Table, asked: str, rows: Int64) -> Undecided:
    """The `rows` that the predicate in column `asked` could not decide, grouped by reason."""
    if asked + WHY not in said.column_names or not len(rows):
        return [(rows, "")] if len(rows) else []
    found: dict[str, list[int]] = {}
    why = said.column(asked + WHY).take(pa.array(rows)).to_pylist()
    for row, reason in zip(rows.tolist(), why, strict=True):
        found.setdefault(f": {reason}" if reason else "", []).append(row)
    return [(np.array(those), reason) for reason, those in found.items()]


def rejected(
    event: str, table: str, rows: pa.Table, version: Int64, refused: Undecided
) -> list[Rejected]:
    """The rows of a table that are `refused`, with the reason. version[n] is that of row n."""
    return [
        Rejected(event, f"{table}@{version[at]}", reason, row)
        for some, reason in refused
        for at, row in zip(some, python_rows(rows.take(some)), strict=True)
    ]
