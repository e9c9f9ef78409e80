"""How much room a store takes: SQLite's file with its write-ahead log; on PostgreSQL, where others
may use the same database, the store's own tables with their indexes."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from tidegate.engine.store.database import Database
from tidegate.engine.store.tables import metadata

_OWN = sa.text(
    "SELECT sum(pg_total_relation_size(to_regclass(name))) FROM unnest(:names) AS name"
).bindparams(sa.bindparam("names", type_=sa.ARRAY(sa.Text)))


def store_bytes(database: Database, connection: sa.Connection) -> int:
    """The bytes that a store takes on disk."""
    if database.file is None:
        return int(connection.execute(_OWN, {"names": [*metadata.tables]}).scalar_one() or 0)
    files = (database.file, Path(f"{database.file}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
