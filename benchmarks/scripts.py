"""Event scripts alone, a runner on Arrow tables in memory: the rows of the goals in EventScript
(Cohen & Kalleberg 2008, section 6; one core of 2 GHz). A rate is by CPU seconds: ours is one core,
too. Beside each rate stands the paper's."""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from benchmarks.detector import fastest
from benchmarks.figure import Figure
from tidegate.engine.core.values import Batch, Carried
from tidegate.engine.detect.scripts import run as runs
from tidegate.engine.detect.scripts.program import Script
from tidegate.engine.detect.scripts.run import ScriptRunner
from tidegate.rules.eventscript import reader

EVENTS = 1_000_000
BUCKET = 1_000
STAGES = 50
ROUNDS = 3
INTERPRETED = 100_000
PAPER = {
    "baseline": 359_301,
    "creation": 281_187,
    "filter_none": 281_374,
    "filter_half": 253_105,
    "filter_all": 235_642,
    "sliding_10": 95_599,
}
GOALS = {
    "baseline": 50,
    "creation": 40,
    "filter_none": 30,
    "filter_half": 30,
    "filter_all": 30,
    "sliding_10": 20,
}  # million events a second
FILTER = "in double A out double z (A(x) {{x > {} ? !> z(x);}})*"
TEXTS = {
    "baseline": "in double A out double z (A())*",
    "creation": "in double A out double z (A(x) {!> z(x);})*",
    "filter_none": FILTER.format("2.0"),
    "filter_half": FILTER.format("0.5"),
    "filter_all": FILTER.format("-1.0"),
    "sliding_10": """
in double A out double average
{ last = new double[10]; at = 0; sum = 0.0; }
(A(x) {
    sum = sum - last[at] + x; last[at] = x; at = at == 9 ? 0 : at + 1;
    !> average(sum / 10.0);
})*
""",
    "groups": """
in {long k; double v;} A group(A.k)
out {long n; double sum;} z
(A(x) {n = n + 1; sum = sum + x.v; !> z({n: n, sum: sum});})*
""",
}
PAPER_LATENCY = 9.7  # us
GROUPS = {"1": 1, "100": 100, "10k": 10_000, "1m": 1_000_000}


def runner(text: str) -> ScriptRunner:
    return ScriptRunner(Script("bench", reader.read(text)[0]), 0)


def batch(count: int, groups: int | None = None) -> Batch:
    """An event each millisecond, of a random value, in groups where they are given."""
    random = np.random.default_rng(5)
    number = np.arange(count)
    time = 1_700_000_000_000_000 + number * 1_000
    columns = {"v" if groups else "value": pa.array(random.random(count))}
    if groups:
        columns["k"] = pa.array(random.integers(0, groups, count))
    ids = {"": np.column_stack([number, time]).astype(np.uint64)}
    return Batch("A", time, number, pa.table(columns), ids)


def step(of: ScriptRunner, given: Batch) -> None:
    of.step(Carried(), {"A": given}, int(given.time[-1]))


def buckets(of: ScriptRunner, parts: list[Batch]) -> None:
    carried = Carried()
    for part in parts:
        carried = of.step(carried, {"A": part}, int(part.time[-1])).carried


def stages(of: list[ScriptRunner], given: Batch) -> None:
    """Each stage takes what the one before emits."""
    batch: Batch | None = given
    for each in of:
        if batch is not None:
            found = each.step(Carried(), {"A": batch}, int(given.time[-1])).emissions
            batch = found.batch("z", "A")


def rates() -> list[Figure]:
    given = batch(EVENTS)
    taken = {name: partial(step, runner(TEXTS[name]), given) for name in GOALS}
    _, cpu = fastest(taken, ROUNDS)
    figures = []
    for name, goal in GOALS.items():
        rate = EVENTS / cpu[name]
        told = {"mps": rate / 1e6, "paper_mps": PAPER[name] / 1e6, "faster": rate / PAPER[name]}
        figures.append(Figure(f"scripts: {name}, {goal}M/s / rate", goal * 1e6 / rate, 1.0, told))
    return figures


def latency() -> Figure:
    given = batch(EVENTS // 10)
    parts = [given.take(np.arange(first, first + BUCKET)) for first in range(0, len(given), BUCKET)]
    _, cpu = fastest({"": partial(buckets, runner(TEXTS["creation"]), parts)}, ROUNDS)
    each = cpu[""] / len(given) * 1e6
    told = {"us": each, "paper_us": PAPER_LATENCY}
    return Figure("scripts: an event in buckets of 1,000 / paper", each / PAPER_LATENCY, 1.0, told)


def pipeline() -> Figure:
    given = batch(EVENTS // 10)
    made = [runner(TEXTS["creation"]) for _ in range(STAGES)]
    few = STAGES // 10
    _, cpu = fastest(
        {"few": partial(stages, made[:few], given), "all": partial(stages, made, given)}, ROUNDS
    )
    each = {name: seconds / len(given) * 1e9 for name, seconds in cpu.items()}
    told = {f"ns_{few}_stages": each["few"], f"ns_{STAGES}_stages": each["all"]}
    return Figure("scripts: a stage of 50 / of 5", each["all"] / each["few"] / 10, 1.25, told)


def groups() -> Figure:
    """1M events in 1M groups meet 632,000 of them, each 1.6 times: the row of an instance is a miss
    of the processor's cache, and nearly as many instances as events are written as columns. Of the
    CPU time the pass over the events takes 27 % (twice what it takes with 10k groups), turning
    rows to columns 18 %, the causes of instances 13 %, the columns of emissions 10 %."""
    taken = {
        name: partial(step, runner(TEXTS["groups"]), batch(EVENTS, count))
        for name, count in GROUPS.items()
    }
    _, cpu = fastest(taken, ROUNDS)
    told = {f"{name}_mps": EVENTS / seconds / 1e6 for name, seconds in cpu.items()}
    told["paper_mps"] = 1 / 3.9
    return Figure("scripts: 1M groups, 15M/s / rate", 15 / told["1m_mps"], 1.0, told)


def interpreter() -> Figure:
    """The same scripts without the kernel."""
    plain, grouped = batch(INTERPRETED), batch(INTERPRETED, INTERPRETED // 100)
    taken = {name: partial(step, runner(TEXTS[name]), plain) for name in GOALS}
    taken["groups"] = partial(step, runner(TEXTS["groups"]), grouped)
    with patch.object(runs, "COMPILED_MIN", EVENTS):
        _, cpu = fastest(taken, ROUNDS)
    told = {f"{name}_kps": INTERPRETED / seconds / 1e3 for name, seconds in cpu.items()}
    slowest = min(told.values())
    return Figure("scripts: interpreter, 200k/s / slowest", 200 / slowest, 1.0, told)


def run() -> list[Figure]:
    return [*rates(), latency(), pipeline(), groups(), interpreter()]
