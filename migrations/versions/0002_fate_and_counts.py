"""Fate of entries, parked rules, known stores; counts and times in columns of their own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_BUCKET_COUNTS = ("row_count", "detection_count", "firing_count", "entry_count", "rejected_count")
_STAGES = ("plan", "capture", "detect", "evaluate", "act")


def upgrade() -> None:
    _tables()
    for name in _BUCKET_COUNTS:
        op.add_column("buckets", _number(name))
    for stage in _STAGES:
        op.add_column("buckets", sa.Column(f"seconds_{stage}", sa.Float))
    for name in ("first_detected_at", "last_detected_at"):
        op.add_column("firings", sa.Column(name, sa.BigInteger))
    for name in ("first_id", "last_id"):
        op.add_column("firings", sa.Column(name, sa.Text))
    _outbox()
    op.add_column("rejected", sa.Column("details", sa.Text))
    op.add_column("controls", sa.Column("option", sa.Text))
    op.add_column("controls", sa.Column("answer", sa.Text))


def _number(name: str, kind: type[sa.Integer] = sa.BigInteger) -> sa.Column[int]:
    return sa.Column(name, kind, nullable=False, server_default="0")


def _tables() -> None:
    op.create_table(
        "known_stores",
        sa.Column("rulebook", sa.Text, nullable=False),
        sa.Column("store_id", sa.Text, nullable=False),
        sa.Column("known_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("rulebook", "store_id"),
    )
    op.create_table(
        "parked",
        sa.Column("rulebook", sa.Text, nullable=False),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("hint", sa.Text, nullable=False),
        sa.Column("instant", sa.BigInteger, nullable=False),
        sa.Column("bucket", sa.BigInteger, nullable=False),
        sa.Column("passed_over", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("rulebook", "rule"),
    )


def _outbox() -> None:
    """An entry stored before has its own place, and the app id that its marker would have had."""
    op.add_column("outbox", sa.Column("details", sa.Text))
    op.add_column("outbox", sa.Column("fate", sa.Text))
    op.add_column("outbox", _number("action", sa.Integer))
    op.add_column("outbox", sa.Column("app_id", sa.Text, nullable=False, server_default=""))
    op.add_column("outbox", sa.Column("target_version", sa.BigInteger))
    op.add_column("outbox", _number("place"))
    op.add_column("outbox", _number("stored_at"))
    op.execute(
        "UPDATE outbox SET place = number, app_id = 'tidegate/' || (SELECT store_id FROM meta) "
        "|| '/' || rulebook || '/' || rule"
    )
