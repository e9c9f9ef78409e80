"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    _rulebooks()
    _state()
    _outbox()
    _arrivals()


def _text(name: str, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=nullable)


def _big(name: str, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def _int(name: str, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=nullable)


def _bytes(name: str, nullable: bool = False) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=nullable)


def _of_bucket() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["rulebook", "bucket"], ["buckets.rulebook", "buckets.bucket"])


def _rulebooks() -> None:
    op.create_table(
        "meta",
        _int("one"),
        _text("store_id"),
        _big("last_entry"),
        sa.CheckConstraint("one = 1", name="meta_one"),
        sa.PrimaryKeyConstraint("one"),
    )
    op.create_table(
        "rulebooks",
        _text("name"),
        _text("text"),
        _text("file", nullable=True),
        _big("registered_at"),
        _text("stopped", nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "leases",
        _text("rulebook"),
        _text("holder"),
        _big("epoch"),
        _big("expires_at"),
        sa.PrimaryKeyConstraint("rulebook"),
    )


def _state() -> None:
    op.create_table(
        "buckets",
        _text("rulebook"),
        _big("bucket"),
        _big("watermark_before"),
        _big("watermark"),
        _big("now"),
        _int("adjusted_commits"),
        _text("plan"),
        sa.PrimaryKeyConstraint("rulebook", "bucket"),
    )
    op.create_table(
        "cursors",
        _text("rulebook"),
        _text("table_name"),
        _text("table_id"),
        _big("version"),
        _big("instant"),
        _text("schema"),
        sa.PrimaryKeyConstraint("rulebook", "table_name"),
    )
    op.create_table(
        "activations",
        _text("rulebook"),
        _text("rule"),
        _big("instant"),
        _text("digest"),
        sa.PrimaryKeyConstraint("rulebook", "rule"),
    )
    op.create_table(
        "carried",
        _text("rulebook"),
        _text("name"),
        _bytes("arrow"),
        sa.PrimaryKeyConstraint("rulebook", "name"),
    )


def _outbox() -> None:
    op.create_table(
        "firings",
        _text("rulebook"),
        _big("bucket"),
        _text("rule"),
        _int("firing_count"),
        _bytes("ids"),
        _bytes("firings"),
        _bytes("relation"),
        sa.PrimaryKeyConstraint("rulebook", "bucket", "rule"),
        _of_bucket(),
    )
    op.create_table(
        "outbox",
        sa.Column("number", sa.BigInteger, autoincrement=False, nullable=False),
        _text("rulebook"),
        _big("bucket"),
        _text("rule"),
        _text("kind"),
        _text("text"),
        _text("target", nullable=True),
        _int("position"),
        _bytes("firing_ids", nullable=True),
        _int("depth"),
        _text("state"),
        _int("attempts"),
        _text("error", nullable=True),
        sa.PrimaryKeyConstraint("number"),
        _of_bucket(),
    )
    op.create_index("outbox_by_bucket", "outbox", ["rulebook", "bucket", "rule"])
    not_done = sa.text("state <> 'done'")
    op.create_index(
        "outbox_not_done",
        "outbox",
        ["rulebook", "number"],
        sqlite_where=not_done,
        postgresql_where=not_done,
    )


def _arrivals() -> None:
    op.create_table(
        "signals",
        _text("rulebook"),
        _text("id"),
        _text("event"),
        _text("fields"),
        _big("received_at"),
        _int("depth"),
        _big("instant", nullable=True),
        _big("bucket", nullable=True),
        _big("entry", nullable=True),
        _int("ordinal", nullable=True),
        sa.PrimaryKeyConstraint("rulebook", "id"),
        _of_bucket(),
    )
    op.create_index("signals_by_entry", "signals", ["entry", "ordinal"], unique=True)
    unplaced = sa.text("bucket IS NULL")
    op.create_index(
        "signals_unplaced",
        "signals",
        ["rulebook", "received_at", "id"],
        sqlite_where=unplaced,
        postgresql_where=unplaced,
    )
    op.create_table(
        "rejected",
        _text("rulebook"),
        _big("bucket"),
        _int("ordinal"),
        _text("event"),
        _text("source"),
        _text("reason"),
        _text("fields"),
        sa.PrimaryKeyConstraint("rulebook", "bucket", "ordinal"),
        _of_bucket(),
    )
    op.create_table(
        "controls",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        _text("rulebook"),
        _text("kind"),
        _text("subject"),
        _big("version", nullable=True),
        _big("asked_at"),
        _big("bucket", nullable=True),
        sa.PrimaryKeyConstraint("id"),
        _of_bucket(),
    )
