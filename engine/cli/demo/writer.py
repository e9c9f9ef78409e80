"""The demo's other process: it makes the lake, then makes one commit for each line on stdin.

    python -m tidegate.engine.cli.demo.writer FOLDER

Says `ready` on stdout once the tables stand, and `done` after each commit.
"""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATTEMPTS = 5


def copy_rulebook(example: str, folder: Path) -> Path:
    """Puts the example's rulebook into `folder` and returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    rulebook = folder / f"{example}.yaml"
    with as_file(files("tidegate.rules.examples") / example / rulebook.name) as source:
        shutil.copyfile(source, rulebook)
    return rulebook


def build_tables(spark: SparkSession, example: str, folder: Path) -> None:
    """Runs the example's `tables.sql` under `folder`, and gives the session their plain names."""
    script = (files("tidegate.rules.examples") / example / "tables.sql").read_text(encoding="utf-8")
    lake = folder / "lake"
    for statement in script.replace("./lake", str(lake)).split(";\n"):
        if statement.strip():
            spark.sql(statement)
    database = f"{example}_{uuid4().hex}"
    spark.sql(f"CREATE DATABASE {database}")
    for table in sorted(lake.iterdir()):
        spark.sql(f"CREATE TABLE {database}.{table.name} USING delta LOCATION '{table}'")
    spark.sql(f"USE {database}")


@dataclass(frozen=True, slots=True)
class Step:
    """One commit of the other process. `note`: what the reader should watch for."""

    note: str
    sql: str


STEPS = (
    Step(
        "Ada's account receives 5000; Carl's 20, which no event type asks for.",
        "INSERT INTO transactions VALUES\n  (1, 10, 1, 'deposit', 5000), (2, 30, 3, 'deposit', 20)",
    ),
    Step(
        "Blaise changes his phone number. Half of `takeover`; nothing fires yet.",
        "UPDATE customers SET phone = '555-99' WHERE name = 'Blaise'",
    ),
    Step(
        "Three withdrawals in one commit: Ada's completes `in_and_out`, Blaise's `takeover`.",
        "INSERT INTO transactions VALUES (3, 10, 1, 'withdraw', 4800),\n"
        "  (4, 20, 2, 'withdraw', 300), (5, 30, 3, 'withdraw', 90)",
    ),
    Step(
        "The night's booking, a MERGE over all accounts: Carl's falls below zero.",
        "MERGE INTO accounts a\n"
        "USING (SELECT account_id, sum(if(kind = 'deposit', amount, -amount)) AS moved\n"
        "       FROM transactions GROUP BY account_id) t\n"
        "ON a.account_id = t.account_id\n"
        "WHEN MATCHED THEN UPDATE SET balance = a.balance + t.moved",
    ),
    Step(
        "Every customer is written again unchanged: an update, but nothing happened.",
        "UPDATE customers SET name = name",
    ),
    Step(
        "Dorothy's account is deleted while it still holds money.",
        "DELETE FROM accounts WHERE account_id = 40",
    ),
)


def main(folder: Path) -> None:
    """Builds the tables, then runs a step for each line on stdin until it ends."""
    from tidegate.connectors.delta.session import start_session

    spark = start_session("bank", {"spark.driver.memory": "1g"})
    build_tables(spark, "bank", folder)
    print("ready", flush=True)
    for step, _ in zip(STEPS, sys.stdin, strict=False):
        _commit(spark, step.sql)
        print("done", flush=True)
    spark.stop()


def _commit(spark: SparkSession, sql: str) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            spark.sql(sql)
        except Exception as error:
            # The engine's own MERGE may have come first: then Delta wants the statement repeated.
            if attempt == ATTEMPTS or "DELTA_CONCURRENT" not in str(error):
                raise
            time.sleep(0.2 * attempt)
        else:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
