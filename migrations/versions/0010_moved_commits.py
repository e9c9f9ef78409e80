"""What the log says of commits whose instant was moved."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("commits", sa.Column("logged", sa.BigInteger))
    moved = sa.text("logged IS NOT NULL")
    op.create_index(
        "commits_moved",
        "commits",
        ["rulebook", "bucket", "instant", "table_name"],
        sqlite_where=moved,
        postgresql_where=moved,
    )
