"""Small real Delta tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Lake:
    """A folder of Delta tables; `{name}` in a statement is the table of that name."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def log(self, name: str, version: int) -> Path:
        """The commit file of a version."""
        return self.folder / name / "_delta_log" / f"{version:020d}.json"

    def create(self, name: str, columns: str, more: str = "", **properties: str) -> str:
        """An empty table with the feed and in-commit timestamps on; its path."""
        wanted = {
            "delta.enableChangeDataFeed": "true",
            "delta.enableInCommitTimestamps": "true",
        } | {"delta." + key.replace("__", "."): value for key, value in properties.items()}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in wanted.items())
        self.sql(f"CREATE TABLE {{{name}}} ({columns}) USING delta {more} TBLPROPERTIES ({listed})")
        return self.path(name)

    def sql(self, statement: str) -> None:
        for folder in {part.split("}")[0] for part in statement.split("{")[1:]}:
            statement = statement.replace(f"{{{folder}}}", f"delta.`{self.path(folder)}`")
        self.spark.sql(statement)


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path)
