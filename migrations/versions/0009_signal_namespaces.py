"""Ids of clients' signals and of the engine's own are two namespaces."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_COLUMNS = "rulebook, id, event, fields, received_at, depth, instant, bucket, entry, ordinal"
# An action raised it, or it is the beginning, the end or the failure of one.
_OF_THE_ENGINE = "entry IS NOT NULL OR event LIKE '% %'"


def upgrade() -> None:
    """The key changes, which SQLite cannot do in place: the table is made anew."""
    op.execute("CREATE TABLE signals_0008 AS SELECT * FROM signals")
    op.drop_table("signals")
    _create_signals()
    op.execute(
        f"INSERT INTO signals (namespace, {_COLUMNS}) SELECT "  # noqa: S608
        f"CASE WHEN {_OF_THE_ENGINE} THEN 'engine' ELSE 'client' END, {_COLUMNS} FROM signals_0008"
    )
    op.drop_table("signals_0008")


def _create_signals() -> None:
    op.create_table(
        "signals",
        sa.Column("rulebook", sa.Text, primary_key=True),
        sa.Column("namespace", sa.Text, primary_key=True),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("fields", sa.Text, nullable=False),
        sa.Column("received_at", sa.BigInteger, nullable=False),
        sa.Column("depth", sa.Integer, nullable=False),
        sa.Column("instant", sa.BigInteger),
        sa.Column("bucket", sa.BigInteger),
        sa.Column("entry", sa.BigInteger),
        sa.Column("ordinal", sa.Integer),
        sa.ForeignKeyConstraint(["rulebook", "bucket"], ["buckets.rulebook", "buckets.bucket"]),
    )
    op.create_index("signals_by_entry", "signals", ["entry", "ordinal"], unique=True)
    _partial_index("signals_by_bucket", ["rulebook", "bucket"], "bucket IS NOT NULL")
    unplaced = ["rulebook", "received_at", "id", "namespace"]
    _partial_index("signals_unplaced", unplaced, "bucket IS NULL")
    _partial_index("signals_unplaced_by_event", ["rulebook", "event"], "bucket IS NULL")


def _partial_index(name: str, columns: list[str], where: str) -> None:
    condition = sa.text(where)
    op.create_index(name, "signals", columns, sqlite_where=condition, postgresql_where=condition)
