"""A bucket of 50 rules that fire, over 5 tables: actions side by side against one after another."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks import lake
from benchmarks.figure import Figure, rulebook
from tidegate import Engine

RULES, TARGETS, ROUNDS = 50, 5, 3


def book(folder: Path, changes: Path, together: int) -> Path:
    tables = "".join(f'  t{n}: {{path: "{folder / f"t{n}"}"}}\n' for n in range(TARGETS))
    rules = "".join(
        f"  r{n}: {{on: row, do: [{{sql: INSERT INTO t{n % TARGETS} SELECT id FROM event}}]}}\n"
        for n in range(RULES)
    )
    return rulebook(
        folder,
        f"actions_{together}",
        f"settings: {{actions_in_parallel_max: {together}}}\n"
        f'tables:\n  changes: {{path: "{changes}"}}\n{tables}'
        f"events:\n  row: {{on: insert, table: changes}}\nrules:\n{rules}",
    )


def run(spark: SparkSession, folder: Path) -> Figure:
    """The seconds of the act stage of a bucket, side by side (0: one a core) and one by one."""
    changes = folder / "changes"
    lake.create(spark, changes, "id BIGINT")
    for n in range(TARGETS):
        lake.create(spark, folder / f"t{n}", "id BIGINT")
    seconds: dict[int, list[float]] = {0: [], 1: []}
    with ExitStack() as open_ones:
        engines = {}
        for together in seconds:
            file = book(folder, changes, together)
            store = f"sqlite:///{file.with_suffix('.db')}"
            engines[together] = open_ones.enter_context(Engine(file, spark=spark, store=store))
            engines[together].run_once()
        for round_ in range(ROUNDS + 1):
            spark.range(10).write.format("delta").mode("append").save(str(changes))
            for together, engine in engines.items():
                (report,) = engine.run_once()
                if round_:
                    seconds[together].append(report.seconds["act"])
    side, one = (sorted(seconds[n])[ROUNDS // 2] for n in (0, 1))
    return Figure(
        "a bucket of 50 rules over 5 tables, side by side against one after another",
        side / one,
        0.5,
        {"side_by_side_seconds": side, "one_by_one_seconds": one},
    )
