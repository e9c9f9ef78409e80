"""What each store would do again: its schema and its statements are of the first one of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.engine.default import DefaultDialect

made: dict[str, list[tuple[str, Any]]] = {}  # by kind of database: statements and parameters


@contextmanager
def made_quickly() -> Iterator[None]:
    """A new store is made by the statements that Alembic made the first one of its kind of database
    by: itself it takes twenty times as long."""
    upgrade = command.upgrade

    def quickly(config: Config, revision: str) -> None:
        connection: sa.Connection = config.attributes["connection"]
        kind = connection.dialect.name
        if sa.inspect(connection).get_table_names():
            upgrade(config, revision)
        elif kind not in made:
            with recorded(connection) as statements:
                upgrade(config, revision)
            made[kind] = statements
        else:
            for statement, parameters in made[kind]:
                connection.exec_driver_sql(statement, parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "upgrade", quickly)
        yield


@contextmanager
def recorded(connection: sa.Connection) -> Iterator[list[tuple[str, Any]]]:
    """What is written through a connection meanwhile: statements and their parameters."""
    found: list[tuple[str, Any]] = []

    def record(*given: Any) -> None:
        _, _, statement, parameters, *_ = given
        if not statement.lstrip().startswith(("SELECT", "PRAGMA")):
            found.append((statement, parameters or None))

    sa.event.listen(connection, "before_cursor_execute", record)
    try:
        yield found
    finally:
        sa.event.remove(connection, "before_cursor_execute", record)


@contextmanager
def compiled_once() -> Iterator[None]:
    """SQLAlchemy compiles a statement for each engine; here, for all of a kind of database."""
    compiled: dict[Any, Any] = {}
    create = sa.create_engine

    def created(*words: Any, **options: Any) -> sa.Engine:
        return create(*words, execution_options={"compiled_cache": compiled}, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sa, "create_engine", created)
        patch.setattr(DefaultDialect, "__eq__", lambda own, other: type(own) is type(other))
        patch.setattr(DefaultDialect, "__hash__", lambda own: hash(type(own)))
        yield
