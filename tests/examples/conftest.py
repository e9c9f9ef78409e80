"""An example's rulebook and tables in a temporary folder, changed by SQL with plain names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.lake import Lake
from tidegate.connectors.delta.session import new_session
from tidegate.engine.cli.demo.writer import build_tables, copy_rulebook


@dataclass(frozen=True)
class Example:
    spark: SparkSession
    rulebook: Path

    @property
    def store(self) -> str:
        return f"sqlite:///{self.rulebook.with_suffix('.db')}"

    def sql(self, *statements: str) -> None:
        for statement in statements:
            self.spark.sql(statement)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """The result as a sorted list: a multiset."""
        return sorted((tuple(row) for row in self.spark.sql(query).collect()), key=repr)


@pytest.fixture
def example(spark: SparkSession, tmp_path: Path) -> Callable[[str], Example]:
    def build(name: str) -> Example:
        session = new_session(spark)
        build_tables(session, name, tmp_path)
        return Example(session, copy_rulebook(name, tmp_path))

    return build


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path)
