"""Which commit a cursor stands at, by a digest of its log file."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("cursors", sa.Column("digest", sa.Text))
