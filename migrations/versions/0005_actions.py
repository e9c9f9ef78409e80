"""Which entries may run side by side, when one that failed is due again; the history of commits;
outcomes of conditions beside the firings."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from alembic import op

from tidegate.engine.core.values import Firings
from tidegate.engine.store.blobs import firings_to_columns, table_from_bytes

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("outbox", sa.Column("stage", sa.Integer, server_default="0"))
    reads = sa.Column("reads", sa.Text, nullable=False, server_default="[]")
    appends = sa.Column("appends", sa.Integer, nullable=False, server_default="0")
    again = sa.Column("next_attempt_at", sa.BigInteger, nullable=False, server_default="0")
    otherwise = sa.Column("otherwise_at", sa.BigInteger)
    alternative = sa.Column("alternative", sa.Integer, nullable=False, server_default="0")
    for column in (reads, appends, again, otherwise, alternative):
        op.add_column("outbox", column)
    alive = sa.Column("alive_at", sa.BigInteger, nullable=False, server_default="0")
    op.add_column("leases", alive)
    op.create_table(
        "commits",
        sa.Column("rulebook", sa.Text, primary_key=True),
        sa.Column("table_name", sa.Text, primary_key=True),
        sa.Column("instant", sa.BigInteger, primary_key=True),
        sa.Column("version", sa.BigInteger, primary_key=True),
        sa.Column("bucket", sa.BigInteger, nullable=False),
    )
    op.create_index("commits_by_bucket", "commits", ["rulebook", "bucket"])
    op.create_table(
        "disabled",
        sa.Column("rulebook", sa.Text, primary_key=True),
        sa.Column("rule", sa.Text, primary_key=True),
        sa.Column("instant", sa.BigInteger, nullable=False),
        sa.Column("bucket", sa.BigInteger, nullable=False),
    )
    _separate_outcomes()


def _separate_outcomes() -> None:
    """What the condition said of each firing, out of the table of firings into a column."""
    op.add_column("firings", sa.Column("outcomes", sa.LargeBinary))
    connection = op.get_bind()
    columns: list[sa.ColumnClause[Any]] = [
        sa.column(name) for name in ("rulebook", "bucket", "rule", "firings", "outcomes")
    ]
    table = sa.table("firings", *columns)
    key = [table.c.rulebook, table.c.bucket, table.c.rule]
    for row in connection.execute(sa.select(*key)).all():
        one = sa.and_(*(column == value for column, value in zip(key, row, strict=True)))
        stored = connection.execute(sa.select(table.c.firings).where(one)).scalar_one()
        found = Firings("", table_from_bytes(stored), pa.table({}))
        changed = firings_to_columns(found)
        del changed["relation"]
        connection.execute(sa.update(table).where(one).values(changed))
