"""What rules carry, the misfires of clocks, and since when an engine loses ground."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    for name in ("carried_instances", "carried_keys"):
        number = sa.Column(name, sa.BigInteger, nullable=False, server_default="0")
        op.add_column("activations", number)
    op.create_table(
        "misfires",
        sa.Column("rulebook", sa.Text, primary_key=True),
        sa.Column("clock", sa.Text, primary_key=True),
        sa.Column("passed_over", sa.BigInteger, nullable=False),
    )
    op.add_column("leases", sa.Column("losing_since", sa.BigInteger))
