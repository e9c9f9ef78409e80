"""Small real Delta tables, and a shop: a rulebook and its store beside them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support import written
from tests.support.table import rows_of
from tidegate import Engine
from tidegate.connectors.delta.java_classes import java_class
from tidegate.engine.core.state import BucketReport
from tidegate.engine.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WATCHED = {"delta.enableChangeDataFeed": "true", "delta.enableInCommitTimestamps": "true"}


def jobs_so_far(spark: SparkSession) -> int:
    """The jobs that a session has submitted. The scheduler counts them itself; what the status
    store shows comes later."""
    return int(spark._jsc.sc().dagScheduler().numTotalJobs())


def notes_of(info: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a commitInfo says of the entries in its commit."""
    said = json.loads(info.get("userMetadata") or "{}").get("tidegate", [])
    return said if isinstance(said, list) else [said]


@dataclass(frozen=True)
class Lake:
    """A folder of Delta tables; `{name}` in a statement is the table of that name."""

    spark: SparkSession
    folder: Path

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def log(self, name: str, version: int) -> Path:
        """The commit file of a version."""
        return self.folder / name / "_delta_log" / f"{version:020d}.json"

    def place(self, name: str, version: int, instant: int) -> None:
        """Let a version of a table without in-commit timestamps be of an instant, microseconds."""
        os.utime(self.log(name, version), (instant / 1e6,) * 2)

    def create(self, name: str, columns: str, more: str = "", **properties: str) -> str:
        """An empty table with the feed and in-commit timestamps on; its path."""
        given = {"delta." + key.replace("__", "."): value for key, value in properties.items()}
        if not more and written.create(self.folder / name, columns, WATCHED | given):
            self._forget(name)
            return self.path(name)
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in (WATCHED | given).items())
        self.sql(f"CREATE TABLE {{{name}}} ({columns}) USING delta {more} TBLPROPERTIES ({listed})")
        return self.path(name)

    def _forget(self, name: str) -> None:
        """What Java knows of another table that was there before."""
        path = java_class(self.spark, "org.apache.hadoop.fs.Path")(self.path(name))
        logs = java_class(self.spark, "org.apache.spark.sql.delta.DeltaLog")
        logs.invalidateCache(self.spark._jsparkSession, path)

    def append(self, name: str, *rows: tuple[Any, ...]) -> None:
        """One commit of rows, which needs no Spark."""
        written.append(self.folder / name, rows)

    def sql(self, statement: str) -> list[Any]:
        """Run it; its rows."""
        for name in {part.split("}")[0] for part in statement.split("{")[1:]}:
            statement = statement.replace(f"{{{name}}}", f"delta.`{self.path(name)}`")
        return self.spark.sql(statement).collect()

    def rows(self, name: str) -> Counter[tuple[Any, ...]]:
        """A table as a multiset."""
        return Counter(rows_of(self.folder / name))


@dataclass(frozen=True)
class Shop(Lake):
    """Tables `orders` and `log` with `shop.yaml` and a store; without `url` in SQLite."""

    url: str | None = None

    @property
    def book(self) -> Path:
        return self.folder / "shop.yaml"

    @property
    def store(self) -> str:
        return self.url or f"sqlite:///{self.folder / 'shop.db'}"

    @contextmanager
    def engine(self, *, watch: bool = False, **settings: str) -> Iterator[Engine]:
        with Engine(
            self.book, spark=self.spark, store=self.store, settings=settings, watch=watch
        ) as engine:
            yield engine

    def run_once(self) -> tuple[BucketReport, ...]:
        with self.engine() as engine:
            return engine.run_once()

    def order(self, *rows: tuple[Any, ...]) -> None:
        """One commit to `orders`."""
        self.append("orders", *rows)

    def logged(self) -> Counter[tuple[Any, ...]]:
        return self.rows("log")

    def status(self) -> dict[str, Any]:
        with open_store(self.store, create=False) as store:
            return store.of("shop").status.shown()

    def edit(self, before: str, after: str) -> None:
        text = self.book.read_text()
        assert before in text
        self.book.write_text(text.replace(before, after))
