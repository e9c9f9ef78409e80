"""The first case of a Spark session, which nobody wrote: Java loads and compiles what cases use.

Example: the first case of a new session takes 6 s, the second 1.4 s. After this, each takes 1.4 s.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from tidegate import rules
from tidegate.engine.replay.cases.model import CaseFile, TableChange, Written
from tidegate.engine.replay.cases.world import World
from tidegate.rules.errors import Place

_BOOK = """\
rulebook: warm_up
tables: {a: {path: /a}, b: {path: /b, key: [id]}}
events: {new: {on: insert, table: a, where: id % 2 = 1}}
rules:
  r:
    on: new
    do:
    - sql: MERGE INTO b USING event e ON b.id = e.id WHEN MATCHED THEN UPDATE SET id = e.id
        WHEN NOT MATCHED THEN INSERT (id) VALUES (e.id)
"""
_COLUMNS = pa.schema([("id", pa.int64())])
_NOWHERE = Place()


def warm_up_file() -> CaseFile:
    """The test file of that case."""
    schemas = {"a": _COLUMNS, "b": _COLUMNS}
    return CaseFile(Path("warm-up"), rules.load(_BOOK), schemas, {}, ())


def warm_up(world: World) -> None:
    """Run that case."""
    world.begin(0, {})
    world.commit({"a": TableChange(_NOWHERE, ({"id": Written(1, _NOWHERE)},))})
    world.drain()
    world.close()
