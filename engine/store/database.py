"""The database of a store: connections, transactions, and its errors as EngineErrors.

SQLite: one file with a write-ahead log, so readers and the engine never wait for each other. Every
commit is synced to disk. Writers begin with BEGIN IMMEDIATE, so that what they have read cannot
change before they write.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError

from tidegate.engine.core.failpoints import COMMITTED, failpoint
from tidegate.engine.core.ports import OutageError
from tidegate.engine.core.text import json_text
from tidegate.engine.store.address import parse_url, redacted, without_secrets
from tidegate.rules.errors import EngineError

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

BUSY_SECONDS = 60
PRIVATE = 0o600
_IMMEDIATE = "tidegate_immediate"
_QUICK = "tidegate_quick"
_FILE = "tidegate_file"
_SERVER = sa.text(
    "SELECT s.system_identifier || ' ' || d.oid FROM pg_control_system() s, pg_database d "
    "WHERE d.datname = current_database()"
)
_PASSING_SQLITE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})
"""Primary result codes of SQLite that may pass by themselves: a full disk, an I/O error."""
_PASSING_POSTGRESQL = ("40", "53", "57", "55P03", "58030", "25006")
"""Prefixes of SQLSTATE codes that may pass by themselves: a deadlock (40P01), a full disk (53100),
too many connections (53300), a cancelled statement (57014), a shutdown (57P01), a lock timeout
(55P03), an I/O error (58030), a server that is read-only during a failover (25006)."""


class Database:
    """Connections to one database, and transactions on them.

    Raises EngineError `bad-store-url`, `store-driver`; from a transaction `no-store` (its file is
    no database), `store-unreachable`, `store-busy`, `store-failed`, `store-replaced`, each naming
    the URL without its password.
    """

    def __init__(self, url: str) -> None:
        self.url = parse_url(url)
        self.shown = redacted(self.url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        waits = {"timeout": BUSY_SECONDS} if self.is_sqlite else {"connect_timeout": 10}
        try:
            engine = sa.create_engine(
                self.url,
                connect_args=waits,
                pool_pre_ping=not self.is_sqlite,  # a server may have been restarted meanwhile
            )
        except ModuleNotFoundError as error:
            hint = "pip install 'tidegate[postgres]'"
            said = without_secrets(str(error), self.url)
            raise EngineError("store-driver", f"{self.shown}: {said}", hint) from error
        self._snapshot = threading.local()
        self._reading: sa.Engine = engine
        self._writing: sa.Engine = engine
        self._quick: sa.Engine = engine
        if self.is_sqlite:
            sa.event.listen(engine, "do_connect", self._create_private)
            sa.event.listen(engine, "connect", _prepare_sqlite)
            sa.event.listen(engine, "connect", self._remember_file)
            sa.event.listen(engine, "begin", _begin_sqlite)
            self._writing = engine.execution_options(**{_IMMEDIATE: True})
            self._quick = engine.execution_options(**{_IMMEDIATE: True, _QUICK: True})
        else:
            self._reading = engine.execution_options(isolation_level="REPEATABLE READ")

    @property
    def file(self) -> Path | None:
        """The file of an SQLite database."""
        return Path(self.url.database or "") if self.is_sqlite else None

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A transaction that sees one state of the database and changes nothing."""
        shared = getattr(self._snapshot, "connection", None)
        if shared is not None:
            yield shared
            return
        with self._errors(), self._reading.begin() as connection:
            yield connection
            self._check_file(connection)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """What this thread reads meanwhile is of one state of the database, in one transaction."""
        with self.read() as connection:
            before = getattr(self._snapshot, "connection", None)
            self._snapshot.connection = connection
            try:
                yield
            finally:
                self._snapshot.connection = before

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[sa.Connection]:
        """A transaction that commits at its end, or leaves nothing if it raises. If it is not
        `durable`, it does not wait for the disk: it outlives the process, but a crash of the
        machine may lose it."""
        with self._errors(), (self._writing if durable else self._quick).begin() as connection:
            if not durable and not self.is_sqlite:
                connection.execute(sa.text("SET LOCAL synchronous_commit = off"))
            yield connection
            self._check_file(connection)
        failpoint(COMMITTED)

    def _check_file(self, connection: sa.Connection) -> None:
        """Raise EngineError `store-replaced` if the file was removed or replaced. Writes to the
        open file would be lost."""
        opened = connection.info.get(_FILE)
        if opened is not None and opened != _identity(self.file):
            message = f"store {self.shown} was removed or replaced while it was open"
            hint = "put its file back, -wal and -shm too, and start again"
            raise EngineError("store-replaced", message, hint)

    def identity(self, connection: sa.Connection) -> str:
        """What tells this very database from every copy of it: its file, or its server and its
        number there. A disk or a server that is copied whole is not told apart."""
        if self.file is not None:
            return f"{self.file.resolve()} {self.file.stat().st_ino}"
        return str(connection.execute(_SERVER).scalar_one())

    def wall(self) -> int:
        """The store's clock, microseconds. SQLite's is the machine's, and needs no transaction."""
        if self.is_sqlite:
            return time.time_ns() // 1000
        with self.read() as connection:
            return server_now(connection)

    def close(self) -> None:
        self._reading.dispose()

    def _create_private(self, *_: object) -> None:
        """Make a missing file readable for its owner only. SQLite gives its log the same mode."""
        with suppress(OSError):  # it is there, or the driver says what is wrong
            os.close(os.open(self.file or "", os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))

    def _remember_file(self, _: object, record: Any) -> None:
        record.info[_FILE] = _identity(self.file)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            clean = without_secrets(str(error), self.url) == str(error)
            raise self._stopped(error) from (error if clean else None)

    def _stopped(self, error: DBAPIError) -> EngineError:
        reason = " ".join(without_secrets(str(error.orig), self.url).split())
        kept = "the last bucket committed stands; start again once this is mended"
        if getattr(error.orig, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB:
            message = f"{self.shown} is no store: {reason}"
            return EngineError("no-store", message, "is the URL another one?")
        if "database is locked" in reason:
            message = f"store {self.shown} was locked by another writer for {BUSY_SECONDS} s"
            return OutageError("store-busy", message, "end the program that holds it, start again")
        if error.connection_invalidated or _never_connected(error):
            message = f"store {self.shown} cannot be reached: {reason}"
            return OutageError("store-unreachable", message, f"check the URL and server; {kept}")
        if _passes(error.orig):
            message = f"store {self.shown} cannot be used just now: {reason}"
            return OutageError("store-unusable", message, f"see to its disk and server; {kept}")
        return EngineError("store-failed", f"store {self.shown} failed: {reason}", kept)


def server_now(connection: sa.Connection) -> int:
    """The store's clock, microseconds: the database server's; for SQLite the machine's (G3)."""
    if connection.dialect.name == "sqlite":
        return time.time_ns() // 1000
    seconds = sa.func.extract("epoch", sa.func.clock_timestamp())
    return int(connection.execute(sa.select(seconds * 1_000_000)).scalar_one())


def mappings(
    connection: sa.Connection, query: sa.Select[*tuple[Any, ...]], *times: str
) -> list[dict[str, Any]]:
    """The rows of a query by column, as JSON writers take them: they refuse SQLAlchemy's kind of
    str. `times`: the columns that are shown as ISO 8601."""
    return [
        {str(n): json_text.instant(v) if n in times else v for n, v in row._mapping.items()}
        for row in connection.execute(query)
    ]


def insert_new(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> bool:
    """Insert a row unless its key is there already; whether it was inserted."""
    statement = _insert(connection, table).on_conflict_do_nothing().values(row)
    return connection.execute(statement.execution_options(preserve_rowcount=True)).rowcount == 1


def unpacked(of_sqlite: bool, columns: Sequence[sa.Column[Any]]) -> sa.Select[*tuple[Any, ...]]:
    """A query that gives the rows in its one parameter `rows`, a JSON text. Its columns have the
    names and types of `columns`. Example of the text: `[["a", 1], ["b", 2]]`."""
    text = sa.bindparam("rows", type_=sa.Text)
    cells: list[sa.ColumnElement[Any]]
    if of_sqlite:
        row = sa.func.json_each(text).table_valued("value").c.value
        cells = [sa.func.json_extract(row, f"$[{n}]") for n in range(len(columns))]
    else:
        row = sa.func.json_array_elements(sa.cast(text, sa.JSON)).column_valued()
        cells = [row.op("->>")(n) for n in range(len(columns))]
    typed = zip(cells, columns, strict=True)
    return sa.select(*(sa.cast(cell, c.type).label(c.name) for cell, c in typed))


def insert_from(
    of_sqlite: bool, table: sa.Table, values: sa.Select[*tuple[Any, ...]]
) -> sa.Executable:
    """Insert the rows of a query whose keys are new. `rowcount` says how many."""
    made = _maker(of_sqlite)(table).from_select(
        values.selected_columns.keys(), values.where(sa.true())
    )
    return made.on_conflict_do_nothing().execution_options(preserve_rowcount=True)


def upsert(connection: sa.Connection, table: sa.Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows with the same columns. A row whose primary key is there is updated."""
    if found := [dict(row) for row in rows]:
        statement = _insert(connection, table)
        keys = list(table.primary_key.columns)
        rest = {name: statement.excluded[name] for name in found[0].keys() - {c.name for c in keys}}
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=rest), found)


def adding(of_sqlite: bool, table: sa.Table, counts: Sequence[str]) -> sa.Executable:
    """A statement that adds to the `counts` of rows, given whole. Missing rows are inserted."""
    statement = _maker(of_sqlite)(table)
    sums = {name: table.c[name] + statement.excluded[name] for name in counts}
    keys = list(table.primary_key.columns)
    return statement.on_conflict_do_update(index_elements=keys, set_=sums)


def add_up(
    connection: sa.Connection, table: sa.Table, key: Mapping[str, str], counts: Mapping[str, int]
) -> None:
    """Add to the counts of the row with this primary key. A missing row is inserted."""
    statement = _insert(connection, table).values({**key, **counts})
    sums = {name: table.c[name] + statement.excluded[name] for name in counts}
    connection.execute(statement.on_conflict_do_update(index_elements=[*key], set_=sums))


def _insert(connection: sa.Connection, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    return _maker(connection.dialect.name == "sqlite")(table)


def _maker(
    of_sqlite: bool,
) -> Callable[[sa.Table], sqlite.Insert] | Callable[[sa.Table], postgresql.Insert]:
    if of_sqlite:
        return sqlite.insert
    from sqlalchemy.dialects import postgresql  # it takes long, and SQLite does without

    return postgresql.insert


def _identity(file: Path | None) -> tuple[int, int] | None:
    try:
        found = os.stat(file or "")
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _passes(error: BaseException | None) -> bool:
    """Whether a driver's error may pass by itself."""
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", 0)
        return code & 0xFF in _PASSING_SQLITE  # the other bits say more of it
    return str(getattr(error, "sqlstate", "")).startswith(_PASSING_POSTGRESQL)


def _never_connected(error: DBAPIError) -> bool:
    reason = str(error.orig)
    return error.statement is None and ("connect" in reason or "unable to open" in reason)


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # else the driver begins and commits where it likes
    if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin_sqlite(connection: sa.Connection) -> None:
    options = connection.get_execution_options()
    immediate = options.get(_IMMEDIATE, False)
    if immediate:
        synchronous = "NORMAL" if options.get(_QUICK) else "FULL"
        connection.exec_driver_sql(f"PRAGMA synchronous = {synchronous}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")
