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

from tidegate.engine.store.schema import SCHEMA


@contextmanager
def made_quickly() -> Iterator[None]:
    """A new SQLite store is made by the statements that Alembic made the first one by: itself it
    takes twenty times as long."""
    made: list[str] = []
    upgrade = command.upgrade

    def quickly(config: Config, revision: str) -> None:
        connection: sa.Connection = config.attributes["connection"]
        if connection.dialect.name != "sqlite" or statements(connection):
            upgrade(config, revision)
        elif not made:
            upgrade(config, revision)
            made.extend(statements(connection))
            made.append(f"INSERT INTO tidegate_version VALUES ('{SCHEMA}')")
        else:
            for statement in made:
                connection.exec_driver_sql(statement)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "upgrade", quickly)
        yield


def statements(connection: sa.Connection) -> list[str]:
    """Those that make what is in a database, in their order."""
    found = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    return [*found.scalars()]


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
