"""An example's rulebook and tables in a folder of their own, ready to be changed and reacted to."""

from __future__ import annotations

import shutil
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
