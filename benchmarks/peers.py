"""Patterns a, b and c as they are written by hand in Polars, and what they take in Esper."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

ESPER_PER_SECOND = {"a": 996_000, "b": 790_000, "c": 1_429_000}
"""Esper 9, key in the filter: 1M events of 10,000 keys on a machine of this kind (two cores)."""

SPAN = 60_000_000


def frame(occurrences: pa.Table) -> pl.DataFrame:
    """The occurrences with their row numbers, their order known."""
    rows = pa.array(np.arange(len(occurrences)))
    found = pl.DataFrame(pl.from_arrow(occurrences.append_column("row", rows)))
    return found.with_columns(pl.col("time").set_sorted())


def _events(occurrences: pl.DataFrame, event: str) -> pl.DataFrame:
    """Key, time to join on, and under the event's name its row and time."""
    mine = occurrences.filter(pl.col("event") == event)
    own = event.lower()
    return mine.select("k", t="time", **{own: "row", f"{own}_time": "time"})


def _as_of(left: pl.DataFrame, right: pl.DataFrame, *, same: bool = False) -> pl.DataFrame:
    return left.join_asof(right, on="t", by="k", allow_exact_matches=same, check_sortedness=False)


def pair(occurrences: pl.DataFrame) -> pl.DataFrame:
    """a: `A ; B within 60 s`."""
    found = _as_of(_events(occurrences, "B"), _events(occurrences, "A"))
    return found.filter(pl.col("t") - pl.col("a_time") <= SPAN).select("a", "b")


def triple(occurrences: pl.DataFrame) -> pl.DataFrame:
    """b: `A ; B ; C within 60 s`."""
    begun = _as_of(_events(occurrences, "B"), _events(occurrences, "A")).drop_nulls("a")
    found = _as_of(_events(occurrences, "C"), begun)
    return found.filter(pl.col("t") - pl.col("a_time") <= SPAN).select("a", "b", "c")


def without(occurrences: pl.DataFrame) -> pl.DataFrame:
    """c: `(A ; C within 60 s) - B`."""
    found = _as_of(_events(occurrences, "C"), _events(occurrences, "A"))
    found = found.filter(pl.col("t") - pl.col("a_time") <= SPAN)
    found = _as_of(found, _events(occurrences, "B"), same=True)
    free = pl.col("b_time").is_null() | (pl.col("b_time") < pl.col("a_time"))
    return found.filter(free).select("a", "c")


BY_HAND = {"a": pair, "b": triple, "c": without}


def equal(detections: pa.Table, by_hand: pl.DataFrame) -> bool:
    """Do both hold the same rows, in whatever order?"""
    width = by_hand.width
    flat = detections.column("constituents").combine_chunks().flatten().to_numpy()
    ours = flat.reshape(-1, width)
    theirs = by_hand.to_numpy()
    if ours.shape != theirs.shape:
        return False
    order, other = (np.lexsort(rows.T) for rows in (ours, theirs))
    return bool((ours[order] == theirs[other]).all())
