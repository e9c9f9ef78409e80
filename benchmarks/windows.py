"""Windows of 1M rows of 10k keys, by `tidegate.detect`, with the rows of each; against Polars in
turn, in a process of its own. CPU seconds of the best round: other work only adds to them."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa

import tidegate
from benchmarks.detector import EVENTS, KEYS, fastest, history, in_a_process, show
from benchmarks.figure import Figure
from tidegate.rules.model import Rulebook

LEAST_MPS = 5
MINUTE, GAP = 60_000_000, 30_000_000
WINDOWS = {
    "tumbling": "{window: 1 min, of: [A, B, C]}",
    "session": "{session: 30 s, of: [A, B, C]}",
    "sliding": "{window: 1 min, every: 30 s, of: [A, B, C]}",
    "crossing": "{over: {window: 1 min, of: [A, B, C], fire: avg(v) > 75}}",
    "holds": "{holds: [A, B], until: C, for: 1 min}",
}


def book(window: str) -> Rulebook:
    fields = "{k: bigint, v: double}"
    events = "".join(f"  {name}: {{signal: {fields}}}\n" for name in "ABC")
    return tidegate.load(f"rulebook: b\nevents:\n{events}rules:\n  r: {{on: {window}, per: k}}\n")


def tumbling(frame: pl.DataFrame) -> pl.DataFrame:
    """The same by hand: start, end and rows of each window."""
    end = (pl.col("time") // MINUTE + 1) * MINUTE
    return frame.group_by(end.alias("end"), "k").agg(pl.col("time").min(), pl.col("row"))


def session(frame: pl.DataFrame) -> pl.DataFrame:
    begins = (pl.col("time").diff().over("k") > GAP).fill_null(value=True)
    number = begins.cum_sum().over("k")
    found = frame.with_columns(number.alias("session")).group_by("session", "k")
    return found.agg(pl.col("time").min(), pl.col("time").max().alias("end") + GAP, pl.col("row"))


def sliding(frame: pl.DataFrame) -> pl.DataFrame:
    half = MINUTE // 2
    first = (pl.col("time") // half + 1) * half
    ends = [frame.with_columns((first + n * half).alias("end")) for n in range(2)]
    return pl.concat(ends).group_by("end", "k").agg(pl.col("time").min(), pl.col("row"))


def crossing(frame: pl.DataFrame) -> pl.DataFrame:
    """The instants at which the average has become more than 75: rows that enter add to the sum and
    the count, rows that leave take from them. Its values are whole, so their sums are exact."""
    enter = frame.select("time", "k", "v", entered=1, left=0)
    leave = frame.select(pl.col("time") + MINUTE, "k", -pl.col("v"), entered=0, left=1)
    each = pl.concat([enter, leave]).group_by("k", "time").agg(pl.all().sum()).sort("k", "time")
    sums = each.with_columns(pl.col("v", "entered", "left").cum_sum().over("k"))
    count = pl.col("entered") - pl.col("left")
    above = ((count > 0) & (pl.col("v") > 75 * count)).alias("above")
    asked = sums.with_columns(above)
    began = pl.col("above") & ~pl.col("above").shift(1, fill_value=False).over("k")
    rows = frame.group_by("k", maintain_order=True).agg(pl.col("row"), pl.col("time").alias("of"))
    fired = asked.filter(began).rename({"time": "end"}).join(rows, on="k")
    return fired.select(
        "k",
        "end",
        pl.col("row").list.slice("left", count),
        pl.col("of").list.get(pl.col("left")).alias("time"),
    )


def holds(frame: pl.DataFrame) -> pl.DataFrame:
    """Without `keep` each C begins anew: the A's and B's of the minute after the first of them,
    where the next C is later. A C comes before an A or B of its instant."""
    ends = pl.col("event") == "C"
    number = ends.cast(pl.Int64).cum_sum().over("k")
    ordered = frame.sort("time", ~ends, maintain_order=True).with_columns(number.alias("run"))
    inside = pl.col("time") <= pl.col("time").min() + MINUTE
    groups = ordered.filter(~ends).group_by("k", "run")
    runs = groups.agg(pl.col("time").min(), pl.col("row").filter(inside))
    following = ordered.filter(ends).select("k", pl.col("run") - 1, pl.col("time").alias("next"))
    end = pl.col("time") + MINUTE
    found = runs.join(following, on=["k", "run"], how="left").with_columns(end.alias("end"))
    return found.filter(pl.col("next").is_null() | (pl.col("next") > pl.col("end")))


BY_HAND = {
    "tumbling": tumbling,
    "session": session,
    "sliding": sliding,
    "crossing": crossing,
    "holds": holds,
}


def frame_of(occurrences: pa.Table) -> pl.DataFrame:
    columns = pl.from_arrow(occurrences.select(["event", "time", "k", "v"]))
    assert isinstance(columns, pl.DataFrame)
    return columns.with_row_index("row")


def same(ours: pa.Table, theirs: pl.DataFrame) -> bool:
    """Whether both have found the same windows with the same rows."""
    found = pl.from_arrow(ours.select(["k", "start", "end", "constituents"]))
    assert isinstance(found, pl.DataFrame)
    found = found.select(
        "k",
        pl.col("start").dt.epoch("us"),
        pl.col("end").dt.epoch("us"),
        pl.col("constituents").list.sort().cast(pl.List(pl.Int64)).alias("row"),
    )
    other = theirs.select(
        "k", pl.col("time").alias("start"), "end", pl.col("row").list.sort().cast(pl.List(pl.Int64))
    )
    return found.sort("k", "end").equals(other.sort("k", "end"))


def figures() -> list[Figure]:
    occurrences = history(EVENTS, KEYS)
    values = np.random.default_rng(7).integers(0, 100, EVENTS).astype(np.float64)
    occurrences = occurrences.append_column("v", pa.array(values))
    frame, found = frame_of(occurrences), []
    for name, window in WINDOWS.items():
        ours, by_hand = book(window), BY_HAND[name]
        if not same(tidegate.detect(ours, occurrences), by_hand(frame)):
            raise SystemExit(f"{name}: the answers of engine and Polars differ")
        runs = {
            "ours": partial(tidegate.detect, ours, occurrences),
            "polars": partial(by_hand, frame),
        }
        wall, cpu = fastest(runs)
        rates = {f"{who}_mps": EVENTS / seconds / 1e6 for who, seconds in wall.items()}
        rates |= {f"{who}_cpu_mps": EVENTS / seconds / 1e6 for who, seconds in cpu.items()}
        title = f"{name}: {LEAST_MPS}M rows/s / engine"
        found.append(Figure(title, LEAST_MPS / rates["ours_cpu_mps"], 1.0, rates))
    return found


def run() -> list[Figure]:
    return in_a_process("benchmarks.windows")


if __name__ == "__main__":
    show(figures())
