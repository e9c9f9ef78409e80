"""Conditions between constituents: the detector alone, a million events of two or three types and
ten thousand keys, ten candidates in the window, of which one in ten passes. Beside Polars for all
pairs of which the condition is true."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa

import tidegate
from benchmarks import peers
from benchmarks.detector import CONTEXTS, EVENTS, KEYS, fastest, history, in_a_process, show
from benchmarks.figure import Figure
from tidegate.rules.model import Rulebook

ALL = ("restricted", *CONTEXTS, "unrestricted")
PAIR = "A ; B within 600 s"
OTHERS = {
    "A and B": ("A and B within 300 s", 2),
    "A or B": ("x:(A or B)", 2),
    "A ; B ; C": ("A ; B ; C within 300 s", 3),
    "not(C)[A, B]": ("not(C)[A, B] within 600 s", 3),
}
"""Expressions and how many event types there are."""


def occurrences(types: int, count: int = EVENTS, keys: int = KEYS) -> pa.Table:
    """With a whole number `v`, even in [0, 1000): of one pair in ten `b.v > 5 * a.v`."""
    values = np.random.default_rng(7).integers(0, 1000, count)
    return history(count, keys, types=types).append_column("v", pa.array(values))


def asked(on: str, context: str) -> Rulebook:
    where = "x.v > 900" if on.startswith("x:") else "B.v > 5 * A.v"
    events = "".join(f"  {name}: {{signal: {{k: bigint, v: bigint}}}}\n" for name in "ABC")
    rule = f'{{on: "{on}", per: k, where: {where}, context: {context}}}'
    return tidegate.load(f"rulebook: b\nevents:\n{events}rules: {{r: {rule}}}\n")


def by_hand(found: pl.DataFrame) -> pl.DataFrame:
    """All pairs `A ; B within 600 s` of which the condition is true. An A is joined to the B's of
    its key in its window of 600 s, and in the next one."""
    span = 600_000_000
    named = found.lazy().with_columns(window=pl.col("time") // span)
    a, b = (
        named.filter(pl.col("event") == name).select("k", "window", "time", "v", "row")
        for name in "AB"
    )
    near = [a, a.with_columns(pl.col("window") + 1)]
    pairs = pl.concat(near).join(b, on=["k", "window"], suffix="_b")
    passed = pairs.filter(
        pl.col("time") < pl.col("time_b"),
        pl.col("time_b") - pl.col("time") <= span,
        pl.col("v_b") > 5 * pl.col("v"),
    )
    return passed.select(a="row", b="row_b").collect()


def figures() -> list[Figure]:
    events = occurrences(2)
    frame = peers.frame(events)
    if not peers.equal(tidegate.detect(asked(PAIR, "unrestricted"), events), by_hand(frame)):
        raise SystemExit("where: the answers of engine and Polars differ")
    runs = {c: partial(tidegate.detect, asked(PAIR, c), events) for c in ALL}
    wall, cpu = fastest({**runs, "polars": partial(by_hand, frame)})
    rates = {f"{name}_mps": EVENTS / seconds / 1e6 for name, seconds in cpu.items()}
    numbers = rates | {f"{name}_wall_mps": EVENTS / taken / 1e6 for name, taken in wall.items()}
    slowest = min(rates[f"{name}_mps"] for name in ALL)
    ratio = cpu["unrestricted"] / cpu["polars"]
    others: dict[str, float] = {}
    for name, (on, types) in OTHERS.items():
        events = occurrences(types)
        books = {f"{name} {c}": partial(tidegate.detect, asked(on, c), events) for c in ALL}
        others |= {each: EVENTS / taken / 1e6 for each, taken in fastest(books, 2)[1].items()}
    return [
        Figure("where: 3M events/s / slowest context, a ; b", 3 / slowest, 1.0, numbers),
        Figure("where: engine / Polars, all pairs", ratio, 1.0, {}),
        Figure("where: 3M events/s / slowest flat form", 3 / min(others.values()), 1.0, others),
    ]


def run() -> list[Figure]:
    return in_a_process("benchmarks.where")


if __name__ == "__main__":
    show(figures())
