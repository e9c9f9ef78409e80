"""The versions of a rulebook, and which of them made a bucket or an entry."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "versions",
        sa.Column("rulebook", sa.Text, primary_key=True),
        sa.Column("version", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("file", sa.Text),
        sa.Column("added", sa.Text, nullable=False),
        sa.Column("registered_at", sa.BigInteger, nullable=False),
    )
    added = sa.Column("added", sa.Text, nullable=False, server_default="{}")
    for table in ("rulebooks", "buckets", "outbox"):
        number = sa.Column("version", sa.BigInteger, nullable=False, server_default="0")
        op.add_column(table, number)
    op.add_column("rulebooks", added)
