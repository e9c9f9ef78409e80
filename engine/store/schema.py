"""The version of a store's schema: checked and migrated."""

from __future__ import annotations

import threading
import uuid
from importlib import resources
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.store import tables as t
from tidegate.engine.store.address import store_option
from tidegate.engine.store.database import Database
from tidegate.rules.errors import EngineError

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

SCHEMA = "0021"  # the last revision in migrations/versions
_VERSIONS = sa.table("tidegate_version", sa.column("version_num", sa.Text))
_LOCK = 0x7464_6761_7465  # PostgreSQL: one migration at a time
_ONE_AT_A_TIME = threading.Lock()  # Alembic keeps what it migrates in variables of its modules


def open_schema(database: Database, *, create: bool) -> None:
    """Check that the store has this version's schema; an empty one gets it if `create`.

    Raises EngineError `no-store`, `store-older`, `store-newer`.
    """
    found = None
    if database.file is None or database.file.exists():
        with database.read() as connection:
            found = version(connection)
    if found is None:
        if not create:
            message = f"there is no store at {database.shown}"
            hint = "`tidegate run` makes it; or is the URL another one?"
            raise EngineError("no-store", message, hint)
        migrate_schema(database)
        return
    if found < SCHEMA:
        raise EngineError(
            "store-older",
            f"store {database.shown} has schema {found}, this tidegate needs {SCHEMA}",
            f"stop what uses it, then: tidegate migrate {store_option(database.url)}",
        )
    _refuse_newer(database, found)


def migrate_schema(database: Database) -> tuple[str | None, str]:
    """Bring the schema up to date in one transaction; returns (version before, version after).

    Raises EngineError `store-newer`, and `no-store` where an SQLite file's folder is missing.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    if database.file is not None and not database.file.absolute().parent.is_dir():
        message = f"store {database.shown}: there is no folder {database.file.parent}"
        raise EngineError("no-store", message, "create the folder, or name another store")
    with database.write() as connection:
        if not database.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        found = version(connection)
        if found is not None:
            _refuse_newer(database, found)
        if found != SCHEMA:
            config = Config()
            config.set_main_option("script_location", str(resources.files("tidegate.migrations")))
            config.attributes["connection"] = connection
            with _ONE_AT_A_TIME:
                _check_known(database, found, ScriptDirectory.from_config(config))
                command.upgrade(config, "head")
            failpoint("migrate.before")
        if found is None:
            row = {"one": 1, "store_id": uuid.uuid4().hex, "last_entry": 0}
            connection.execute(sa.insert(t.meta), row)
    return found, SCHEMA


def version(connection: sa.Connection) -> str | None:
    """The schema's version, None where there is none yet."""
    if not sa.inspect(connection).has_table(_VERSIONS.name):
        return None
    return connection.execute(sa.select(_VERSIONS.c.version_num)).scalar_one_or_none()


def _refuse_newer(database: Database, found: str) -> None:
    if found > SCHEMA:
        raise EngineError(
            "store-newer",
            f"store {database.shown} has schema {found}, made by a newer tidegate; this one "
            f"knows schemas up to {SCHEMA}",
            "install the newer tidegate, or name another store",
        )


def _check_known(database: Database, found: str | None, history: ScriptDirectory) -> None:
    known = {script.revision for script in history.walk_revisions()}
    if found is not None and found not in known:
        raise EngineError(
            "store-older",
            f"store {database.shown} has schema {found}, from before the first release: no "
            "migration leads on from it",
            "name another store: a new one is made; `tidegate adopt` takes over its tables",
        )
