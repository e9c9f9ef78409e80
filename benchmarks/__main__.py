"""`python -m benchmarks [throughput | latency ..]`, see `NAMES`: a table, then JSON."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import (
    actions,
    apart,
    backtest,
    bounds,
    carried,
    conditions,
    console,
    detector,
    history,
    idle,
    inbox,
    lake,
    latency,
    living,
    many_rules,
    memory,
    scripts,
    simulate,
    site,
    state,
    store,
    throughput,
    timers,
    webhooks,
    where,
    why,
    windows,
)
from benchmarks.figure import Figure
from tidegate.connectors.delta.session import start_session

NAMES = (
    "detector",
    "windows",
    "where",
    "scripts",
    "simulate",
    "store",
    "state",
    "site",
    "inbox",
    "webhooks",
    "why",
    "console",
    "timers",
    "many_rules",
    "conditions",
    "actions",
    "living",
    "latency",
    "throughput",
    "backtest",
    "history",
    "bounds",
    "carried",
    "apart",
    "memory",
    "idle",
)
WITHOUT_SPARK = {
    "detector",
    "windows",
    "scripts",
    "simulate",
    "store",
    "state",
    "site",
    "inbox",
    "webhooks",
    "where",
    "why",
    "console",
}
CHANGES_COMMITS = 100


def main(wanted: Sequence[str]) -> None:
    """Runs the figures named, all of them by default."""
    if unknown := set(wanted) - set(NAMES):
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(NAMES)}")
    folder = Path(tempfile.mkdtemp(prefix="tidegate-bench-"))
    try:
        figures = _figures(folder, wanted or NAMES)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _print(figures)


def _figures(folder: Path, wanted: Sequence[str]) -> list[Figure]:
    figures: list[Figure] = []
    if "detector" in wanted:
        _say("detector")
        figures += detector.run()
    if "windows" in wanted:
        _say("windows")
        figures += windows.run()
    if "where" in wanted:
        _say("where")
        figures += where.run()
    if "scripts" in wanted:
        _say("scripts")
        figures += scripts.run()
    if "simulate" in wanted:
        _say("simulate")
        figures += simulate.run(folder / "simulate")
    if "store" in wanted:
        _say("store")
        figures += [store.run(folder / "store"), store.firings(folder / "store")]
    if "state" in wanted:
        _say("state")
        figures.append(state.run(folder / "state"))
        figures.append(state.instance_bytes(folder / "state"))
    if "site" in wanted:
        _say("site")
        figures += site.run(folder / "site")
    if "inbox" in wanted:
        _say("inbox")
        figures.append(inbox.run(folder / "inbox"))
    if "webhooks" in wanted:
        _say("webhooks")
        figures.append(webhooks.run(folder))
    if "why" in wanted:
        _say("why")
        figures += why.run(folder / "why")
    if "console" in wanted:
        _say("console")
        figures += console.run(folder / "console")
    if "timers" in wanted:
        _say("timers")
        figures += [*timers.run(folder / "timers"), timers.wake_up()]
    if set(wanted) <= WITHOUT_SPARK:
        return figures
    spark = start_session("benchmarks")
    changes = folder / "changes"
    if {"throughput", "backtest", "memory"} & set(wanted):
        commits = CHANGES_COMMITS if "memory" in wanted else throughput.COMMITS
        _say(f"{commits} commits of {lake.COMMIT_ROWS:,} rows")
        lake.changes(spark, changes, commits)
    runs: dict[str, Callable[[], Figure | list[Figure]]] = {
        "many_rules": lambda: many_rules.run(spark, folder / "many_rules"),
        "conditions": lambda: conditions.run(spark, folder / "conditions"),
        "actions": lambda: [
            actions.side_by_side(spark, folder / "side_by_side"),
            *actions.single(spark, folder / "single"),
            actions.shared(spark, folder / "shared"),
            actions.marker(spark, folder / "marker"),
            *actions.searching(spark, folder / "searching"),
        ],
        "living": lambda: living.run(spark, folder / "living"),
        "latency": lambda: latency.run(spark, folder / "latency"),
        "throughput": lambda: throughput.run(spark, folder / "throughput", changes),
        "backtest": lambda: backtest.run(spark, folder / "backtest", changes),
        "history": lambda: history.run(spark, folder / "history"),
        "timers": lambda: timers.night(spark, folder / "night"),
        "bounds": bounds.run,
        "carried": lambda: carried.run(spark, folder / "carried"),
        "apart": lambda: apart.run(spark, folder / "apart"),
        "memory": lambda: memory.run(folder / "memory", changes),
        "idle": lambda: idle.run(folder / "idle"),
    }
    for name in NAMES:
        if name in wanted and name in runs:
            _say(name)
            if name in ("memory", "idle"):
                spark.stop()  # they start processes of their own
            found = runs[name]()
            figures += found if isinstance(found, list) else [found]
    return figures


def _say(text: str) -> None:
    print(f"benchmarks: {text}", file=sys.stderr, flush=True)


def _print(figures: Sequence[Figure]) -> None:
    made = Table(show_edge=False)
    for column in ("figure", "ratio", "target", "", "made of"):
        made.add_column(column, overflow="fold")
    for figure in figures:
        numbers = "  ".join(f"{name} {value:,.2f}" for name, value in figure.numbers.items())
        verdict = "met" if figure.met else "missed"
        made.add_row(figure.name, f"{figure.ratio:.2f}", f"<= {figure.target}", verdict, numbers)
    Console().print(made)
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "system": sys.platform}
    print(json.dumps({**machine, "figures": [dataclasses.asdict(f) for f in figures]}))


if __name__ == "__main__":
    main(sys.argv[1:])
