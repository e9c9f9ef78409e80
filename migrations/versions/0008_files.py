"""What the files of a rulebook's scripts said, beside its text."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    for table in ("rulebooks", "versions"):
        files = sa.Column("files", sa.Text, nullable=False, server_default="{}")
        op.add_column(table, files)
