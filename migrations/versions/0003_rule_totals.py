"""What each rule has fired, forgotten firings included."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "rule_totals",
        sa.Column("rulebook", sa.Text, nullable=False),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("firing_count", sa.BigInteger, nullable=False),
        sa.Column("last_detected_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("rulebook", "rule"),
    )
    op.execute(
        "INSERT INTO rule_totals (rulebook, rule, firing_count, last_detected_at) "
        "SELECT rulebook, rule, sum(firing_count), max(last_detected_at) FROM firings "
        "GROUP BY rulebook, rule"
    )
