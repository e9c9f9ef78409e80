"""The names of a rulebook's tables in SQL: a database of external tables (G31)."""

from __future__ import annotations

import logging
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
from tidegate.connectors.delta.jobs import Jobs
from tidegate.connectors.delta.session import new_session
from tidegate.rules.errors import InputError, Problem
from tidegate.rules.model import Rulebook, Table

# Below it an Arrow table becomes a local relation, whose size the optimiser knows (a small MERGE
# source is broadcast then); above it that is ten times slower than the alternative.
LOCAL_RELATION_BYTES = 262_144

log = logging.getLogger(__name__)
_COUNT = count(1)
_UNRESOLVED = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "CATALOG_NOT_FOUND",
    "REQUIRES_SINGLE_PART_NAMESPACE",  # so many names, and the first is no catalog's
    "DELTA_TABLE_NOT_FOUND",
)
_IN_MEMORY = (
    "Spark's catalog is in memory here, and empty at each start: say `path:`, or name a lasting "
    "catalog, with `--spark-conf spark.sql.catalogImplementation=hive` (and spark.hadoop.hive."
    "metastore.uris) or `--spark-conf spark.sql.catalog.NAME=CLASS`"
)
_CREATE = "create it before the engine starts, or correct its path or name"


class Catalog:
    """The database `tidegate_<rulebook>_<store id>_<epoch>_<n>`, and sessions that use it.

    It stands in the session catalog of `spark` (in memory unless the user's own session says
    otherwise), holds no data, and is dropped by `close`. It is of one engine only: another one has
    another epoch, and without a lease there is a random word in the epoch's place. An engine that
    takes over a changed rulebook has a second one for a moment: they are counted.
    """

    def __init__(
        self, spark: SparkSession, rulebook: Rulebook, store_id: str, epoch: int | None = None
    ) -> None:
        self.spark = spark
        self.jobs = Jobs(spark)
        self.store_id = store_id
        self._epoch = epoch
        self._prefix = f"tidegate_{rulebook.name}_{store_id}_".lower()
        whose = f"{secrets.token_hex(4)}x" if epoch is None else str(epoch)
        self.database = f"{self._prefix}{whose}_{next(_COUNT)}"
        self.locations: Mapping[str, str] = {}
        self._tables = rulebook.tables
        self._own = new_session(spark)  # a user's may put variables into texts

    def open(self, spared: Collection[str] = ()) -> None:
        """`create`, of all tables: raises InputError for every table that cannot be had; tables in
        `spared` are left out then."""
        problems = self.create()
        for table in problems.keys() & {*spared}:
            log.warning("%s", problems[table].message)
        if wrong := [problem for table, problem in problems.items() if table not in spared]:
            self.close()
            raise InputError(wrong)

    def create(self) -> dict[str, Problem]:
        """Create the database with the tables that can be had, and drop those that engines of
        earlier epochs left in a lasting catalog. Returns what is wrong with the others, by name."""
        for name in (*self._outlived(), self.database):
            self._drop(name)
        self._sql(f"CREATE DATABASE {self._name()}")
        problems: dict[str, Problem] = {}
        locations: dict[str, str] = {}
        for table in self._tables.values():
            try:
                locations[table.name] = location = self._location(table)
                at = location.replace("\\", "\\\\").replace("'", "\\'")
                self._sql(f"CREATE TABLE {self._name(table.name)} USING delta LOCATION '{at}'")
            except SPARK_ERRORS as error:
                problems[table.name] = self._missing(table, error)
            except InputError as error:
                problems[table.name] = error.problems[0]
        self.locations = locations
        return problems

    def close(self) -> None:
        """Drop the database; the tables' data is not its own and stays."""
        self.jobs.close()
        try:
            self._drop(self.database)
        except SPARK_ERRORS as error:  # it is gone with its session
            if not is_lost(error):
                raise

    @contextmanager
    def session(self) -> Iterator[SparkSession]:
        """A session of its own that uses the database; the caller's active session comes back."""
        with active_session_kept(self.spark):
            session = new_session(self.spark)
            session.conf.set(
                "spark.sql.execution.arrow.localRelationThreshold", f"{LOCAL_RELATION_BYTES}b"
            )
            self.use(session)
            yield session

    def use(self, session: SparkSession) -> None:
        """Make unqualified names of `session` those of the rulebook."""
        session.sql(f"USE {self._name()}")

    def _outlived(self) -> list[str]:
        """The databases of the same rulebook and store whose epoch is over."""
        if self._epoch is None:
            return []
        rows = self.spark.sql("SHOW DATABASES IN spark_catalog LIKE 'tidegate*'").collect()
        names = [row[0] for row in rows if row[0].startswith(self._prefix)]
        epochs = {name: name.removeprefix(self._prefix).partition("_")[0] for name in names}
        return [n for n, epoch in epochs.items() if epoch.isdecimal() and int(epoch) < self._epoch]

    def _drop(self, database: str) -> None:
        self._sql(f"DROP DATABASE IF EXISTS spark_catalog.{quoted(database)} CASCADE")

    def _location(self, table: Table) -> str:
        if table.path is not None:
            jvm: Any = self.spark._jvm
            delta = jvm.io.delta.tables.DeltaTable
            if not delta.isDeltaTable(self.spark._jsparkSession, table.path):
                message = f"table {table.name}: no Delta table at {table.path}"
                raise InputError([Problem("table-missing", message, table.place, _CREATE)])
            return table.path
        if "${" in str(table.catalog):
            message = f"{table.catalog}: ${{..}} is refused in a name"
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

    def _sql(self, text: str) -> None:
        self._own.sql(text)


@contextmanager
def active_session_kept(spark: SparkSession) -> Iterator[None]:
    """PySpark makes a session active that is given data; put back what was active before."""
    jvm: Any = spark._jvm
    sessions = jvm.org.apache.spark.sql.SparkSession
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
    """The Spark schema of an Arrow schema; a timestamp without a zone is a TIMESTAMP_NTZ."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def show(session: SparkSession, table: pa.Table, *names: str) -> DataFrame:
    """Make an Arrow table visible in one session under `names`."""
    frame = session.createDataFrame(table, schema=spark_schema(table.schema))
    for name in names:
        frame.createOrReplaceTempView(name)
    return frame


def collected(frame: DataFrame) -> pa.Table:
    """The rows of a frame.

    The frame is planned first. PySpark collects in a thread of Java's, and waits for ever where
    that thread ends by an error of Java's own, such as the stack overflow of a constant pattern.
    """
    planned(frame)
    return frame.toArrow()


def planned(frame: DataFrame) -> DataFrame:
    """The frame, with its plan made. Raises what Spark says of it."""
    java: Any = frame._jdf
    java.queryExecution().executedPlan()
    return frame


def quoted(name: str) -> str:
    """A name as SQL has it, whatever characters are in it."""
    return "`" + name.replace("`", "``") + "`"
