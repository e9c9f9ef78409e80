"""Rows with an event time: `time:`, `lateness:`, `ahead:` (G5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidegate.engine.core.parameters import INSTANT
from tidegate.engine.core.values import Int64
from tidegate.rules.expressions.durations import length
from tidegate.rules.model import TableEvent


class Timed(NamedTuple):
    """Rows in order of their times, and those that are not taken, with the reason."""

    row: Int64
    time: Int64
    refused: list[tuple[Int64, str]]


def timed(
    event: TableEvent,
    column: pa.ChunkedArray,
    row: Int64,
    commit: Int64,
    seen_at: int | None = None,
) -> Timed:
    """The rows `row` at the times in `column`, microseconds. commit[n] is the instant of the commit
    of row[n]. A row is late if its time is before its commit by more than the lateness. `seen_at`:
    when a snapshot was read; its rows are never late.

    Example: with lateness 10 min a row of 9:55 in a commit at 10:00 stands at 9:55, one of 9:45 is
    late. With `ahead` 1 h, one of 11:30 is refused.
    """
    own = column.combine_chunks().take(pa.array(row)).cast(INSTANT)
    missing = np.asarray(own.is_null())
    time = own.cast(pa.int64()).fill_null(0).to_numpy()
    before = ~missing & (time < commit - event.lateness_micros)
    if seen_at is not None:
        before, commit = np.zeros_like(missing), np.full_like(commit, seen_at)
    after = ~missing & (time > commit + event.ahead_micros)
    name = event.time
    reasons = [
        (missing, f"`time: {name}` is null"),
        (
            before,
            f"late: `time: {name}` is more than {length(event.lateness_micros)} before its commit",
        ),
        (after, f"`time: {name}` is more than {length(event.ahead_micros)} after its commit"),
    ]
    kept = np.flatnonzero(~(missing | before | after))
    kept = kept[np.argsort(time[kept], kind="stable")]
    refused = [(row[mark], reason) for mark, reason in reasons if mark.any()]
    return Timed(row[kept], time[kept], refused)
