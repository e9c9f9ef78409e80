"""Conditions between constituents: the detector alone, a million events of two types and ten
thousand keys, ten candidates within the window, one in ten of them passes. Beside Polars for all
pairs of which the condition is true."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa

import tidegate
from benchmarks.detector import CONTEXTS, EVENTS, KEYS, book, fastest, history
from benchmarks.figure import Figure
from tidegate.rules.model import Rulebook

WINDOW_SECONDS = 600  # of a key an A each minute
SHAPES = {
    "a ; b": ("A ; B within 600 s", "B.v > 5 * A.v"),
}
ALL = ("restricted", *CONTEXTS, "unrestricted")


def events(count: int, keys: int) -> pa.Table:
    """With a whole number `v`, even in [0, 1000): one pair in ten has `b.v > 5 * a.v`."""
    values = np.random.default_rng(7).integers(0, 1000, count)
    return history(count, keys, types=2).append_column("v", pa.array(values))


def asked(on: str, where: str, context: str) -> Rulebook:
    plain = book(on, context=context, types=2)
    text = plain.text.replace("{k: bigint}", "{k: bigint, v: bigint}")
    return tidegate.load(text.replace("context:", f'where: "{where}", context:'))


def by_hand(occurrences: pl.DataFrame) -> pl.DataFrame:
    """All pairs `A ; B within 600 s` of which the condition is true."""
    a, b = (occurrences.filter(pl.col("event") == name) for name in "AB")
    a, b = a.rename({"time": "a_time"}), b.rename({"time": "b_time"})
    near = pl.col("b_time") - pl.col("a_time")
    ...
    return a
