"""What is remembered of firings that passed; how many were dropped."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "damping",
        sa.Column("rulebook", sa.Text, primary_key=True),
        sa.Column("rule", sa.Text, primary_key=True),
        sa.Column("kind", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("until", sa.BigInteger, nullable=False),
        sa.Column("instants", sa.LargeBinary, nullable=False),
    )
    op.create_index("damping_by_time", "damping", ["rulebook", "until"])
    op.create_table(
        "damped_totals",
        sa.Column("rulebook", sa.Text, primary_key=True),
        sa.Column("rule", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("firing_count", sa.BigInteger, nullable=False),
    )
