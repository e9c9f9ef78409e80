"""The tables of a test case: real Delta tables in a folder, made and changed as its steps say."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from tidegate.connectors.delta.catalog import Catalog, quoted, show
from tidegate.connectors.delta.faults import SPARK_ERRORS, check_alive, fault
from tidegate.connectors.delta.gate import Gate
from tidegate.connectors.delta.java_classes import java_class
from tidegate.connectors.delta.new_table import append, create_table, read_rows, replace_rows
from tidegate.connectors.delta.plans import Plans
from tidegate.connectors.delta.row_changes import Edit, change, literal
from tidegate.engine.core.ports import FEED_KINDS, KIND
from tidegate.engine.core.types.spark import schema_json, spark_type
from tidegate.engine.core.values import Cursor
from tidegate.engine.replay.cases.world import Shown
from tidegate.engine.replay.memory.tables import MemoryTable
from tidegate.engine.replay.memory.typed_changes import TypedChange
from tidegate.rules.errors import EngineError, InputError, Problem

INTERPRETED = {  # a statement over few rows is run faster than it is compiled
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_SETTINGS = {**INTERPRETED, "spark.databricks.delta.merge.materializeSource": "none"}
_SOURCE = "tidegate_inserted"
_KIND_NAMES = {kind: name for name, kind in FEED_KINDS.items()}


class CaseTables:
    """Tables by name, each in a folder of its name.

    `_known`: what they held at a version of `_versions`. It takes Spark a second to read or change
    a few rows; they are read from the files, and where Arrow decides the predicates, the commit is
    written without it.
    """

    def __init__(self, folder: Path, schemas: Mapping[str, pa.Schema]) -> None:
        self.folder, self.schemas = folder, schemas
        self._known: dict[str, MemoryTable] = {}
        self._versions: dict[str, int] = {}
        for name, schema in schemas.items():
            create_table(folder / name, table_id(name), schema.empty_table())

    def renew(self, catalog: Catalog, first: Mapping[str, pa.Table]) -> None:
        """Make all tables anew, with these rows at version 0."""
        spark = catalog.spark
        logs = java_class(spark, "org.apache.spark.sql.delta.DeltaLog")
        paths = java_class(spark, "org.apache.hadoop.fs.Path")
        for name, rows in first.items():
            shutil.rmtree(self.folder / name)
            create_table(self.folder / name, table_id(name), rows)
            logs.invalidateCache(spark._jsparkSession, paths(str(self.folder / name)))
        self._known = {name: MemoryTable(name, rows, 0) for name, rows in first.items()}
        self._versions = dict.fromkeys(first, 0)

    def cursors(self, instant: int) -> dict[str, Cursor]:
        """By table, the cursor after its version 0, committed at `instant`."""
        return {
            name: Cursor(name, table_id(name), 0, instant, schema_json(schema))
            for name, schema in self.schemas.items()
        }

    def commit(self, catalog: Catalog, name: str, given: TypedChange, version: int) -> None:
        """Change a table, whose next version is `version`. Raises InputError with what Spark says
        of the predicates."""
        if not given.added.names and self._written(name, given, version):
            return
        with catalog.session() as session:
            for key, value in _SETTINGS.items():
                session.conf.set(key, value)
            if given.added.names:
                self._widen(session, name, given.added, version)
                return
            gate = Gate(Plans(session), ())
            wheres = [one.where for one, _ in given.updates]
            deletes = [one.where for one in given.deletes]
            for where in wheres + deletes:
                gate.expression(where, lambda _: given.place)  # one predicate, not other SQL
            source = _SOURCE if given.inserted.num_rows else None
            if source is not None:
                show(session, given.inserted, source)
            try:
                session.sql(change(quoted(name), source, self._sql(name, given), deletes))
            except SPARK_ERRORS as error:
                check_alive(error)
                told = fault(error)
                message = f"the change of {name} fails: [{told.condition}] {told.message}"
                raise InputError([Problem("where", message, given.place)]) from error

    def _widen(self, session: SparkSession, name: str, added: pa.Schema, version: int) -> None:
        known = self._at(name, version - 1)
        columns = ", ".join(f"{quoted(one.name)} {spark_type(one.type)}" for one in added)
        session.sql(f"ALTER TABLE {quoted(name)} ADD COLUMNS ({columns})")
        known.widen(0, added)
        self._versions[name] = version

    def _at(self, name: str, version: int) -> MemoryTable:
        """A table as of a version. It is read again where others have committed."""
        if self._versions[name] != version:
            rows = read_rows(self.folder / name, self._known[name].schema, version)
            self._known[name], self._versions[name] = MemoryTable(name, rows, 0), version
        return self._known[name]

    def _written(self, name: str, given: TypedChange, version: int) -> bool:
        """Write the commit without Spark; if that cannot be, False."""
        known, folder = self._at(name, version - 1), self.folder / name
        if not (given.updates or given.deletes):
            known.commit(0, given.inserted, (), None)
            append(folder, version, given.inserted)
            self._versions[name] = version
            return True
        try:
            edits, deleted = given.decided(known.rows)
        except (EngineError, InputError):  # Spark says what is wrong, if anything is
            return False
        before = known.version
        known.commit(0, given.inserted, edits, deleted)
        if known.version == before:
            return True  # it meets no row
        made = known.commits[-1]
        if not made.changes.num_rows:
            return False  # a MERGE that meets no row
        self._versions[name] = version
        kinds = pa.array([_KIND_NAMES[kind] for kind in made.changes[KIND].to_pylist()])
        changes = made.changes.drop_columns([KIND]).append_column("_change_type", kinds)
        replace_rows(folder, version, made.operation, made.metrics, known.rows, changes)
        return True

    def _sql(self, name: str, given: TypedChange) -> Sequence[Edit]:
        schema = self._known[name].schema
        return [
            (one.where, {n: literal(value, schema.field(n).type) for n, value in new.items()})
            for one, new in given.updates
        ]

    def reading(self, versions: Mapping[str, int]) -> Mapping[str, Sequence[Shown]]:
        """By table, its rows as of a version. They are read when they are looked at."""
        return _Read(versions, lambda name: _shown(self._at(name, versions[name]).rows))


class _Read(Mapping[str, Sequence[Shown]]):
    """What is read by name, once."""

    def __init__(self, names: Mapping[str, int], read: Callable[[str], Sequence[Shown]]) -> None:
        self._names, self._read = names, read
        self._known: dict[str, Sequence[Shown]] = {}

    def __getitem__(self, name: str) -> Sequence[Shown]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def table_id(name: str) -> str:
    """The metadata id of a case's table. It is the same in each world, for it is part of the ids of
    occurrences (G6)."""
    return f"memory-{name}"


def _shown(rows: pa.Table) -> Sequence[Shown]:
    found: Sequence[Shown] = rows.to_pylist()
    return found
