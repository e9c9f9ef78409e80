"""Runs migrations on the connection that `engine.store.schema` has opened, in its transaction."""

from __future__ import annotations

from alembic import context

from tidegate.engine.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table="tidegate_version",
    transactional_ddl=True,
)
context.run_migrations()
