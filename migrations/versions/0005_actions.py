"""Which entries may run side by side, and when one that failed is due again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("outbox", sa.Column("stage", sa.Integer, server_default="0"))
    reads = sa.Column("reads", sa.Text, nullable=False, server_default="[]")
    appends = sa.Column("appends", sa.Integer, nullable=False, server_default="0")
    again = sa.Column("next_attempt_at", sa.BigInteger, nullable=False, server_default="0")
    for column in (reads, appends, again):
        op.add_column("outbox", column)
