"""One rulebook's tables and its judge, for attacks on what SQL is let in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.support.rulebooks import flat_rule
from tidegate.connectors.delta.analyst import DeltaAnalyst
from tidegate.connectors.delta.catalog import Catalog
from tidegate.connectors.delta.events import _Checker
from tidegate.connectors.delta.plans import Plans
from tidegate.rules.errors import InputError, Place, Problem
from tidegate.rules.expressions.parser import parse
from tidegate.rules.model import Change, Condition, Context, Rule, Rulebook, Sql, Table, TableEvent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Place("bank.yaml", 3, 5, "rules.r.do[0].sql")
MOVES = (
    "move BIGINT, account BIGINT, amount DECIMAL(12,2), booked_at TIMESTAMP, day DATE, kind STRING,"
    " tags ARRAY<STRING>, info MAP<STRING,INT>, site STRUCT<city: STRING, zone: INT>, note STRING,"
    " doc BINARY"
)
TABLES = {
    "accounts": "(account BIGINT, balance DOUBLE, blocked BOOLEAN)",
    "alerts": "(account BIGINT, text STRING)",
    "moves": f"({MOVES})",
    "checked": "(account BIGINT NOT NULL, amount DOUBLE, booked_at TIMESTAMP, code VARCHAR(5))"
    " TBLPROPERTIES ('delta.constraints.positive' = 'amount > -1e9')",
    "dated": "(booked_at TIMESTAMP, amount DOUBLE, day DATE GENERATED ALWAYS AS (CAST(booked_at AS"
    " DATE)))",
}
INSTANT = pa.timestamp("us", "UTC")
EVENT = pa.schema(
    [
        ("firing_id", pa.string()),
        ("event_type", pa.string()),
        ("detected_at", INSTANT),
        ("account", pa.int64()),
        ("amount", pa.float64()),
        ("kind", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("site", pa.struct([("city", pa.string()), ("zone", pa.struct([("id", pa.int32())]))])),
        ("old", pa.struct([("amount", pa.float64()), ("kind", pa.string())])),
    ]
)
PER_FIRING = ("firing_id", "detected_at", "account")
HONEST = Path(__file__).with_name("honest.txt")


@dataclass
class Judge:
    """What `validate --tables` says of a text at its place: `action`, `query`, `where`, `if`."""

    analyst: DeltaAnalyst
    checker: _Checker
    spark: SparkSession
    folder: Path

    def __call__(self, where: str, text: str) -> Problem | None:
        """The first problem found, None for a text that is let in."""
        say: dict[str, Callable[[str], object]] = {
            "action": lambda t: self.analyst.action(rule(), Sql(t, HERE), EVENT, ()),
            "query": lambda t: self.ask(t, query=True),
            "if": lambda t: self.ask(t, query=False),
            "where": self.where,
        }
        try:
            say[where](text)
        except InputError as error:
            return error.problems[0]
        return None

    def ask(self, text: str, *, query: bool) -> object:
        asked = rule(condition=Condition(text, query, HERE))
        return self.analyst.condition(asked, EVENT, PER_FIRING)

    def where(self, text: str) -> None:
        event = TableEvent("e", HERE, Change.INSERT, "moves", where=text, where_place=HERE)
        schema = self.spark.read.format("delta").load(str(self.folder / "moves")).schema
        problems = list(self.checker.table(Table("moves", HERE), [event], schema))
        if problems:
            raise InputError(problems)

    @property
    def plans(self) -> Plans:
        return self.analyst._plans


def rule(**more: object) -> Rule:
    return flat_rule("r", HERE, parse("w", HERE), "w", Context.RESTRICTED, **more)  # type: ignore[arg-type]


def honest() -> list[tuple[str, str]]:
    """(place, text) of each line of honest.txt."""
    found, place = [], ""
    for line in HONEST.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            place = line.strip("[]")
        elif line and not line.startswith("#"):
            found.append((place, line))
    return found


@pytest.fixture(scope="session")
def judge(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    folder = tmp_path_factory.mktemp("hostile")
    for name, columns in TABLES.items():
        columns, properties, more = columns.partition(" TBLPROPERTIES")
        at = f"delta.`{folder / name}`"
        spark.sql(f"CREATE TABLE {at} {columns} USING delta{properties}{more}")
    tables = {name: Table(name, HERE, path=str(folder / name)) for name in TABLES}
    book = Rulebook("hostile", None, "", "UTC", tables, {}, {})
    catalog = Catalog(spark, book, "hostile")
    catalog.open()
    checker = _Checker(catalog._own, book, ())
    yield Judge(DeltaAnalyst(catalog, book), checker, spark, folder)
    catalog.close()
