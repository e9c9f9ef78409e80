"""When the first timer of each carried part is due, and how many there are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("carried", sa.Column("due", sa.BigInteger))
    timers = sa.Column("timers", sa.BigInteger, nullable=False, server_default="0")
    op.add_column("carried", timers)
    op.create_index("carried_by_due", "carried", ["rulebook", "due"])
