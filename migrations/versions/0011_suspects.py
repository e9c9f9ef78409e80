"""What runs in Spark, and what has ended it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "begun",
        sa.Column("rulebook", sa.Text, primary_key=True),
        sa.Column("running", sa.Text, nullable=False),
    )
    op.create_table(
        "suspects",
        *(
            sa.Column(name, sa.Text, primary_key=True)
            for name in ("rulebook", "kind", "subject", "text", "part")
        ),
        sa.Column("item", sa.Text, nullable=False),
        sa.Column("told", sa.Text, nullable=False),
        *(sa.Column(name, sa.Integer, nullable=False) for name in ("deaths", "overruns", "ends")),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
