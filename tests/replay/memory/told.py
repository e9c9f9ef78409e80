"""A world in memory that is told what happens, in seconds after its beginning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tests.support.make import BEGIN, SECOND
from tidegate import rules
from tidegate.engine.core.types.spark import arrow_type
from tidegate.engine.replay.cases.model import Delete, Fail, Row, TableChange, Update, Written
from tidegate.engine.replay.cases.world import Observation
from tidegate.engine.replay.memory.worlds import MemoryWorld, MemoryWorlds
from tidegate.rules.errors import Place

PLACE = Place("a.test.yaml", 7, 3)
ITEMS = {"id": "bigint", "amount": "decimal(12,2)", "note": "string"}
HEAD = """\
rulebook: shop
tables: {items: {path: /items, key: [id]}, out: {path: /out}}
events:
  new: {on: insert, table: items}
  changed: {on: update, table: items}
  gone: {on: delete, table: items}
  told: {signal: {id: bigint}}
rules:
"""


def row(**values: Any) -> Row:
    return {name: Written(value, PLACE) for name, value in values.items()}


def worlds(text: str, **tables: Mapping[str, str]) -> MemoryWorlds:
    """Of a rulebook over `items`, `out` and other tables, whose columns have these types."""
    book = rules.load(text, file="/books/shop.yaml")
    known = {"items": ITEMS, "out": {"id": "bigint"}, **tables}
    schemas = {
        name: pa.schema([(column, arrow_type(ddl)) for column, ddl in columns.items()])
        for name, columns in known.items()
        if name in book.tables
    }
    return MemoryWorlds(book, schemas)


class Told:
    """A world at work: `at` goes on to a time, what follows happens there."""

    def __init__(self, made: MemoryWorlds | str, **before: Sequence[Mapping[str, Any]]) -> None:
        made = worlds(made) if isinstance(made, str) else made
        self.world: MemoryWorld = made.world()
        tables = {name: [row(**one) for one in rows] for name, rows in before.items()}
        self.world.begin(BEGIN, tables)

    def at(self, seconds: float) -> Told:
        self.world.advance(BEGIN + round(seconds * SECOND))
        self.world.drain()
        return self

    def change(self, seconds: float, table: str = "items", **change: Any) -> Told:
        """One commit: `inserts`, `updates`, `deletes`."""
        self.world.advance(BEGIN + round(seconds * SECOND))
        made = TableChange(
            PLACE,
            tuple(row(**one) for one in change.get("inserts", ())),
            tuple(Update(where, PLACE, row(**new)) for where, new in change.get("updates", ())),
            tuple(Delete(where, PLACE) for where in change.get("deletes", ())),
        )
        self.world.commit({table: made})
        self.world.drain()
        return self

    def insert(self, seconds: float, *rows: Mapping[str, Any], table: str = "items") -> Told:
        return self.change(seconds, table, inserts=rows)

    def widen(self, seconds: float, table: str = "items", **columns: str) -> Told:
        """One commit that adds columns of these types."""
        self.world.advance(BEGIN + round(seconds * SECOND))
        added = pa.schema([(name, arrow_type(ddl)) for name, ddl in columns.items()])
        self.world.commit({table: TableChange(PLACE, added=added)})
        self.world.drain()
        return self

    def signal(self, seconds: float, event: str, **fields: Any) -> Told:
        self.world.advance(BEGIN + round(seconds * SECOND))
        self.world.signal(event, row(**fields))
        self.world.drain()
        return self

    def fail(self, rule: str, times: int) -> Told:
        self.world.fail(Fail(rule, times, PLACE))
        return self

    @property
    def seen(self) -> Observation:
        return self.world.observe()

    def fired(self, rule: str) -> list[float]:
        """When a rule fired, seconds after the beginning."""
        ends = (one["at"].timestamp() for one in self.seen.firings.get(rule, ()))
        return [round(end - BEGIN / SECOND, 6) for end in ends]

    def outcomes(self, rule: str) -> list[tuple[str, str | None]]:
        """The condition and the damping of each firing."""
        return [(one["condition"], one["damped"]) for one in self.seen.firings.get(rule, ())]
