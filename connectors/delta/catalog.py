"""The names of a rulebook's tables in SQL: a database of external tables (G31)."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tidegate.connectors.delta.faults import SPARK_ERRORS, fault, is_lost
from tidegate.connectors.delta.java_classes import java_class
from tidegate.connectors.delta.jobs import Jobs
from tidegate.connectors.delta.session import SESSION, ensure_active, new_session
from tidegate.engine.core.relation_files import Relation, RelationFiles
from tidegate.engine.core.values import hex_ids
from tidegate.rules.errors import InputError, Problem
from tidegate.rules.model import Rulebook, Table

# A smaller Arrow table becomes a local relation. The optimiser knows its size, and broadcasts a
# small MERGE source. A larger table would be ten times slower as a local relation.
LOCAL_RELATION_BYTES = 262_144

_PATTERN = re.compile(r"[{}\[\]*?\\]")  # in a path that Spark reads, these stand for others

_READ = {
    "datetimeRebaseMode": "CORRECTED",
    # whatever Spark is told of other files: an action without its rows would do nothing
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "parquet.page.verify-checksum.enabled": "true",  # else a flipped bit is another value
}

log = logging.getLogger(__name__)
_COUNT = count(1)
_UNRESOLVED = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "CATALOG_NOT_FOUND",
    "REQUIRES_SINGLE_PART_NAMESPACE",  # three names, and the first is no catalog
    "DELTA_TABLE_NOT_FOUND",
)
_IN_MEMORY = (
    "Spark's catalog is in memory here, and empty at each start: write `path:`, or name a lasting "
    "catalog, with `--spark-conf spark.sql.catalogImplementation=hive` (and spark.hadoop.hive."
    "metastore.uris) or `--spark-conf spark.sql.catalog.NAME=CLASS`"
)
_CREATE = "create it before the engine starts, or correct its path or name"


class Catalog:
    """The database `tidegate_<rulebook>_<store id>_<epoch>_<n>`, and sessions that use it.

    It is in the session catalog of `spark`, which is in memory unless the user's own session sets
    another. It holds no data. `close` drops it. Each engine has one of its own: the epoch differs,
    and where there is no lease a random word takes the epoch's place. An engine that takes over a
    changed rulebook has two for a moment: n differs.
    """

    def __init__(
        self, spark: SparkSession, rulebook: Rulebook, store_id: str, epoch: int | None = None
    ) -> None:
        self.spark = spark
        self.jobs = Jobs(spark)
        self._epoch = epoch
        self._prefix = f"tidegate_{rulebook.name}_{store_id}_".lower()
        whose = f"{secrets.token_hex(4)}x" if epoch is None else str(epoch)
        self.database = f"{self._prefix}{whose}_{next(_COUNT)}"
        self.locations: Mapping[str, str] = {}
        self._tables = rulebook.tables
        self._own = new_session(spark)  # a user's session may substitute variables in texts

    def open(self, spared: Collection[str] = ()) -> None:
        """Create the database. Raises InputError with every table that is missing; a table in
        `spared` is left out instead, with a warning in the log."""
        problems = self.create()
        for table in problems.keys() & {*spared}:
            log.warning("%s", problems[table].message)
        if wrong := [problem for table, problem in problems.items() if table not in spared]:
            self.close()
            raise InputError(wrong)

    def create(self) -> dict[str, Problem]:
        """Create the database with the tables that are there. Returns the problem of each other
        table, by name. Databases that engines of earlier epochs left in a lasting catalog are
        dropped."""
        for name in (*self._outlived(), self.database):
            self._drop(name)
        self._own.sql(f"CREATE DATABASE {self._name()}")
        problems: dict[str, Problem] = {}
        locations: dict[str, str] = {}
        for table in self._tables.values():
            try:
                location = self._location(table)
                at = location.replace("\\", "\\\\").replace("'", "\\'")
                self._own.sql(f"CREATE TABLE {self._name(table.name)} USING delta LOCATION '{at}'")
                locations[table.name] = location
            except SPARK_ERRORS as error:
                problems[table.name] = self._missing(table, error)
            except InputError as error:
                problems[table.name] = error.problems[0]
        self.locations = locations
        return problems

    def close(self) -> None:
        """Drop the database. Its tables are external: their data stays."""
        self.jobs.close()
        try:
            self._drop(self.database)
        except SPARK_ERRORS as error:  # where Spark has ended, so has the database
            if not is_lost(error):
                raise

    @contextmanager
    def session(self) -> Iterator[SparkSession]:
        """A new session, in which names without a database are the rulebook's. The caller's active
        session is put back after."""
        with active_session_kept(self.spark):
            session = new_session(self.spark)
            session.conf.set(
                "spark.sql.execution.arrow.localRelationThreshold", f"{LOCAL_RELATION_BYTES}b"
            )
            session.sql(f"USE {self._name()}")
            yield session

    def snapshot(self, table: str) -> Any:
        """Delta's own snapshot of a table's latest version, see `latest_snapshot`."""
        return latest_snapshot(self.spark, self.locations[table])

    def _outlived(self) -> list[str]:
        """The databases of the same rulebook and store whose epoch is over."""
        if self._epoch is None:
            return []
        rows = self.spark.sql("SHOW DATABASES IN spark_catalog LIKE 'tidegate*'").collect()
        names = [row[0] for row in rows if row[0].startswith(self._prefix)]
        epochs = {name: name.removeprefix(self._prefix).partition("_")[0] for name in names}
        return [n for n, epoch in epochs.items() if epoch.isdecimal() and int(epoch) < self._epoch]

    def _drop(self, database: str) -> None:
        self._own.sql(f"DROP DATABASE IF EXISTS spark_catalog.{quoted(database)} CASCADE")

    def _location(self, table: Table) -> str:
        if table.path is not None:
            delta = java_class(self.spark, "io.delta.tables.DeltaTable")
            if not delta.isDeltaTable(self.spark._jsparkSession, table.path):
                message = f"table {table.name}: no Delta table at {table.path}"
                raise InputError([Problem("table-missing", message, table.place, _CREATE)])
            return table.path
        if "${" in str(table.catalog):
            message = f"{table.catalog}: a name with ${{..}} is refused"
            raise InputError([Problem("table-missing", message, table.place, "write the name")])
        parser: Any = self.spark._jsparkSession.sessionState().sqlParser()
        parts = parser.parseMultipartIdentifier(table.catalog)
        name = ".".join(quoted(parts.apply(n)) for n in range(parts.length()))
        detail = self.spark.sql(f"DESCRIBE DETAIL {name}").first()
        if detail is None or detail["format"] != "delta":
            hint = "tidegate reads and writes Delta tables; CONVERT TO DELTA makes it one"
            message = f"{table.catalog} is not a Delta table"
            raise InputError([Problem("table-not-delta", message, table.place, hint)])
        return str(detail["location"])

    def _missing(self, table: Table, error: BaseException) -> Problem:
        found = fault(error)
        where = table.path or table.catalog
        message = f"table {table.name}: {where} cannot be used as a Delta table: {found.line}"
        hint = _CREATE
        if table.catalog is not None and found.condition.startswith(_UNRESOLVED):
            message = f"table {table.name}: Spark's catalog knows no {where}"
            if self.spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "in-memory":
                hint = _IN_MEMORY
        return Problem("table-missing", message, table.place, hint)

    def _name(self, table: str = "") -> str:
        name = f"spark_catalog.{quoted(self.database)}"
        return f"{name}.{quoted(table)}" if table else name


def latest_snapshot(spark: SparkSession, location: str) -> Any:
    """Delta's snapshot of a table's latest version. Delta keeps it: only new commits are read."""
    ensure_active(spark)
    logs = java_class(spark, "org.apache.spark.sql.delta.DeltaLog")
    none = java_class(spark, "scala.Option").empty()
    return logs.forTable(spark._jsparkSession, location).update(False, none, none)


@contextmanager
def active_session_kept(spark: SparkSession) -> Iterator[None]:
    """Put back the active session afterwards: PySpark activates a session that is given data."""
    sessions = java_class(spark, SESSION)
    python, java = SparkSession._activeSession, sessions.getActiveSession()
    try:
        yield
    finally:
        SparkSession._activeSession = python
        if java.isDefined():
            sessions.setActiveSession(java.get())
        else:
            sessions.clearActiveSession()


def spark_schema(schema: pa.Schema) -> StructType:
    """An Arrow schema as a Spark schema. A timestamp without a zone becomes TIMESTAMP_NTZ."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def show(session: SparkSession, rows: Relation, *names: str) -> DataFrame:
    """Make rows visible in one session under `names`, wherever they are."""
    schema = spark_schema(rows.schema)
    if isinstance(rows, RelationFiles):
        frame = _in_files(session, rows, schema)
    else:
        frame = session.createDataFrame(rows, schema=schema)
    for name in names:
        frame.createOrReplaceTempView(name)
    return frame


def _in_files(session: SparkSession, rows: RelationFiles, schema: StructType) -> DataFrame:
    """The rows of some firings that lie in files, which Spark reads itself."""
    reader = session.read.schema(schema).options(**_READ)
    frame = reader.parquet(*map(_uri, rows.paths))
    if rows.whole:
        return frame
    ids = session.createDataFrame(pa.table({"firing_id": hex_ids(rows.ids)}))
    return frame.join(ids, "firing_id", "left_semi").select(*map(quoted, schema.names))


def _uri(path: str) -> str:
    """A path of this machine as Hadoop takes it, whatever its default file system is."""
    whole = f"file://{path}" if path.startswith("/") else path
    return _PATTERN.sub(r"\\\g<0>", whole)


def collected(frame: DataFrame) -> pa.Table:
    """The rows of a frame, which is planned first.

    PySpark collects in a Java thread. It would wait for ever where that thread dies of a Java error
    while it plans, such as a stack overflow in a constant regular expression.
    """
    planned(frame)
    return frame.toArrow()


def planned(frame: DataFrame) -> DataFrame:
    """The frame, once Spark has planned it. Raises what Spark raises."""
    java: Any = frame._jdf
    java.queryExecution().executedPlan()
    return frame


def quoted(name: str) -> str:
    """A name as SQL writes it, whatever its characters: a`b is `a``b`."""
    return "`" + name.replace("`", "``") + "`"
