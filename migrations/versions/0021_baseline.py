"""The store's tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = None
TEXT, BIG, SMALL, REAL, BLOB = sa.Text, sa.BigInteger, sa.Integer, sa.Float, sa.LargeBinary


def upgrade() -> None:
    _rulebooks()
    _rules()
    _buckets()
    _firings()
    _damping()
    _outbox()
    _arrivals()


def _column(
    name: str, kind: Any, *, nullable: bool = False, default: str | None = None
) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=nullable, server_default=default)


def _index(
    name: str, table: str, *columns: str, unique: bool = False, where: str | None = None
) -> None:
    of = None if where is None else sa.text(where)
    op.create_index(name, table, list(columns), unique=unique, sqlite_where=of, postgresql_where=of)


def _rulebooks() -> None:
    op.create_table(
        "meta",
        _column("one", SMALL),
        _column("store_id", TEXT),
        _column("last_entry", BIG),
        sa.CheckConstraint("one = 1", name="meta_one"),
        sa.PrimaryKeyConstraint("one"),
    )
    op.create_table(
        "known_stores",
        _column("rulebook", TEXT),
        _column("store_id", TEXT),
        _column("known_at", BIG),
        sa.PrimaryKeyConstraint("rulebook", "store_id"),
    )
    op.create_table(
        "rulebooks",
        _column("name", TEXT),
        _column("text", TEXT),
        _column("file", TEXT, nullable=True),
        _column("registered_at", BIG),
        _column("stopped", TEXT, nullable=True),
        _column("version", BIG, default="0"),
        _column("added", TEXT, default="{}"),
        _column("files", TEXT, default="{}"),
        _column("limits", TEXT, default="{}"),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "versions",
        _column("rulebook", TEXT),
        _column("version", BIG),
        _column("text", TEXT),
        _column("file", TEXT, nullable=True),
        _column("added", TEXT),
        _column("registered_at", BIG),
        _column("files", TEXT, default="{}"),
        sa.PrimaryKeyConstraint("rulebook", "version"),
    )
    op.create_table(
        "leases",
        _column("rulebook", TEXT),
        _column("holder", TEXT),
        _column("epoch", BIG),
        _column("expires_at", BIG),
        _column("alive_at", BIG, default="0"),
        _column("state", TEXT, default=""),
        _column("doing", TEXT, default=""),
        _column("commits", BIG, default="0"),
        _column("signals", BIG, default="0"),
        _column("oldest", BIG, nullable=True),
        _column("next_timer", BIG, nullable=True),
        _column("looked_at", BIG, nullable=True),
        _column("seen_until", BIG, nullable=True),
        _column("state_at", BIG, nullable=True),
        _column("losing_since", BIG, nullable=True),
        sa.PrimaryKeyConstraint("rulebook"),
    )


def _rules() -> None:
    op.create_table(
        "cursors",
        _column("rulebook", TEXT),
        _column("table_name", TEXT),
        _column("table_id", TEXT),
        _column("version", BIG),
        _column("instant", BIG),
        _column("schema", TEXT),
        _column("digest", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("rulebook", "table_name"),
    )
    op.create_table(
        "keepings",
        _column("rulebook", TEXT),
        _column("table_name", TEXT),
        _column("log_micros", BIG, nullable=True),
        _column("files_micros", BIG),
        _column("oldest", BIG),
        _column("head", BIG),
        _column("told_at", BIG),
        sa.PrimaryKeyConstraint("rulebook", "table_name"),
    )
    op.create_table(
        "activations",
        _column("rulebook", TEXT),
        _column("rule", TEXT),
        _column("instant", BIG),
        _column("digest", TEXT),
        _column("carried_instances", BIG, default="0"),
        _column("carried_keys", BIG, default="0"),
        sa.PrimaryKeyConstraint("rulebook", "rule"),
    )
    op.create_table(
        "rule_sizes",
        _column("rulebook", TEXT),
        _column("hour", BIG),
        _column("rule", TEXT),
        _column("instances", BIG),
        _column("keys", BIG),
        sa.PrimaryKeyConstraint("rulebook", "hour", "rule"),
    )
    op.create_table(
        "misfires",
        _column("rulebook", TEXT),
        _column("clock", TEXT),
        _column("passed_over", BIG),
        sa.PrimaryKeyConstraint("rulebook", "clock"),
    )
    op.create_table(
        "parked",
        _column("rulebook", TEXT),
        _column("rule", TEXT),
        _column("reason", TEXT),
        _column("hint", TEXT),
        _column("instant", BIG),
        _column("bucket", BIG),
        _column("passed_over", BIG),
        sa.PrimaryKeyConstraint("rulebook", "rule"),
    )
    op.create_table(
        "parkings",
        _column("rulebook", TEXT),
        _column("rule", TEXT),
        _column("instant", BIG),
        _column("until", BIG),
        _column("reason", TEXT),
        sa.PrimaryKeyConstraint("rulebook", "rule", "instant"),
    )
    op.create_table(
        "disabled",
        _column("rulebook", TEXT),
        _column("rule", TEXT),
        _column("instant", BIG),
        _column("bucket", BIG),
        sa.PrimaryKeyConstraint("rulebook", "rule"),
    )


def _buckets() -> None:
    op.create_table(
        "buckets",
        _column("rulebook", TEXT),
        _column("bucket", BIG),
        _column("watermark_before", BIG),
        _column("watermark", BIG),
        _column("now", BIG),
        _column("adjusted_commits", SMALL),
        _column("plan", TEXT),
        _column("row_count", BIG, default="0"),
        _column("detection_count", BIG, default="0"),
        _column("firing_count", BIG, default="0"),
        _column("entry_count", BIG, default="0"),
        _column("rejected_count", BIG, default="0"),
        _column("seconds_plan", REAL, nullable=True),
        _column("seconds_capture", REAL, nullable=True),
        _column("seconds_detect", REAL, nullable=True),
        _column("seconds_evaluate", REAL, nullable=True),
        _column("seconds_act", REAL, nullable=True),
        _column("version", BIG, default="0"),
        sa.PrimaryKeyConstraint("rulebook", "bucket"),
    )
    _index("buckets_by_now", "buckets", "rulebook", "now", "bucket")
    op.create_table(
        "commits",
        _column("rulebook", TEXT),
        _column("table_name", TEXT),
        _column("instant", BIG),
        _column("version", BIG),
        _column("bucket", BIG),
        _column("logged", BIG, nullable=True),
        sa.PrimaryKeyConstraint("rulebook", "table_name", "instant", "version"),
    )
    _index("commits_by_bucket", "commits", "rulebook", "bucket")
    _index("commits_by_version", "commits", "rulebook", "table_name", "version", "bucket")
    _index(
        "commits_moved",
        "commits",
        "rulebook",
        "bucket",
        "instant",
        "table_name",
        where="logged IS NOT NULL",
    )
    op.create_table(
        "carried",
        _column("rulebook", TEXT),
        _column("name", TEXT),
        _column("file", TEXT, nullable=True),
        _column("file_row", BIG, nullable=True),
        _column("arrow", BLOB, nullable=True),
        _column("due", BIG, nullable=True),
        _column("timers", BIG, default="0"),
        _column("row_count", BIG, default="0"),
        sa.PrimaryKeyConstraint("rulebook", "name"),
    )
    _index("carried_by_due", "carried", "rulebook", "due")
    _index("carried_by_file", "carried", "rulebook", "file", where="file IS NOT NULL")
    op.create_table(
        "state_files",
        _column("rulebook", TEXT),
        _column("file", TEXT),
        _column("home", TEXT),
        _column("bytes", BIG),
        _column("bucket", BIG, nullable=True),
        _column("rule", TEXT, nullable=True),
        _column("unused_since", BIG, nullable=True),
        sa.PrimaryKeyConstraint("rulebook", "file"),
    )
    _index("state_files_unused", "state_files", "rulebook", "unused_since", "file")
    _index("state_files_by_bucket", "state_files", "rulebook", "bucket", where="bucket IS NOT NULL")


def _firings() -> None:
    op.create_table(
        "totals",
        _column("rulebook", TEXT),
        _column("row_count", BIG),
        _column("detection_count", BIG),
        _column("firing_count", BIG),
        _column("entry_count", BIG),
        _column("rejected_count", BIG),
        _column("adjusted_commits", BIG),
        sa.PrimaryKeyConstraint("rulebook"),
    )
    op.create_table(
        "rule_totals",
        _column("rulebook", TEXT),
        _column("rule", TEXT),
        _column("firing_count", BIG),
        _column("fired", BIG, default="0"),
        _column("condition_failed", BIG, default="0"),
        _column("last_fired_at", BIG, nullable=True),
        sa.PrimaryKeyConstraint("rulebook", "rule"),
    )
    op.create_table(
        "rule_hours",
        _column("rulebook", TEXT),
        _column("hour", BIG),
        _column("rule", TEXT),
        _column("fired", BIG, default="0"),
        _column("condition_failed", BIG, default="0"),
        _column("damped", BIG, default="0"),
        _column("dead", BIG, default="0"),
        sa.PrimaryKeyConstraint("rulebook", "hour", "rule"),
    )
    op.create_table(
        "firings",
        _column("rulebook", TEXT),
        _column("bucket", BIG),
        _column("rule", TEXT),
        _column("ordinal", SMALL),
        _column("firing_count", SMALL),
        _column("first_detected_at", BIG),
        _column("last_detected_at", BIG),
        _column("first_id", TEXT),
        _column("last_id", TEXT),
        _column("firings", BLOB),
        _column("outcomes", BLOB, nullable=True),
        _column("relation", BLOB),
        sa.ForeignKeyConstraint(
            ["rulebook", "bucket"],
            ["buckets.rulebook", "buckets.bucket"],
        ),
        sa.PrimaryKeyConstraint("rulebook", "bucket", "rule"),
    )
    _index("firings_by_rule", "firings", "rulebook", "rule", "bucket")
    _index("firings_by_time", "firings", "rulebook", "last_detected_at", "bucket")
    op.create_table(
        "firing_runs",
        _column("rulebook", TEXT),
        _column("run", BIG),
        _column("first_bucket", BIG),
        _column("level", SMALL),
        _column("id_count", BIG),
        sa.PrimaryKeyConstraint("rulebook", "run"),
    )
    op.create_table(
        "firing_ids",
        _column("rulebook", TEXT),
        _column("run", BIG),
        _column("first_id", BLOB),
        _column("ids", BLOB),
        _column("places", BLOB),
        sa.PrimaryKeyConstraint("rulebook", "run", "first_id"),
    )
    op.create_table(
        "cause_runs",
        _column("rulebook", TEXT),
        _column("run", BIG),
        _column("first_bucket", BIG),
        _column("level", SMALL),
        _column("id_count", BIG),
        sa.PrimaryKeyConstraint("rulebook", "run"),
    )
    op.create_table(
        "cause_ids",
        _column("rulebook", TEXT),
        _column("run", BIG),
        _column("first_id", BLOB),
        _column("ids", BLOB),
        _column("places", BLOB),
        sa.PrimaryKeyConstraint("rulebook", "run", "first_id"),
    )


def _damping() -> None:
    op.create_table(
        "damping",
        _column("rulebook", TEXT),
        _column("rule", TEXT),
        _column("kind", SMALL),
        _column("id", TEXT),
        _column("until", BIG),
        _column("instants", BLOB),
        sa.PrimaryKeyConstraint("rulebook", "rule", "kind", "id"),
    )
    _index("damping_by_time", "damping", "rulebook", "until")
    op.create_table(
        "damped_totals",
        _column("rulebook", TEXT),
        _column("rule", TEXT),
        _column("kind", TEXT),
        _column("firing_count", BIG),
        sa.PrimaryKeyConstraint("rulebook", "rule", "kind"),
    )


def _outbox() -> None:
    op.create_table(
        "outbox",
        _column("number", BIG),
        _column("rulebook", TEXT),
        _column("bucket", BIG),
        _column("rule", TEXT),
        _column("kind", TEXT),
        _column("text", TEXT),
        _column("target", TEXT, nullable=True),
        _column("position", SMALL),
        _column("firing_ids", BLOB, nullable=True),
        _column("depth", SMALL),
        _column("state", TEXT),
        _column("attempts", SMALL),
        _column("error", TEXT, nullable=True),
        _column("details", TEXT, nullable=True),
        _column("fate", TEXT, nullable=True),
        _column("action", SMALL, default="0"),
        _column("app_id", TEXT, default=""),
        _column("target_version", BIG, nullable=True),
        _column("place", BIG, default="0"),
        _column("stored_at", BIG, default="0"),
        _column("stage", SMALL, nullable=True, default="0"),
        _column("reads", TEXT, default="[]"),
        _column("appends", SMALL, default="0"),
        _column("next_attempt_at", BIG, default="0"),
        _column("otherwise_at", BIG, nullable=True),
        _column("alternative", SMALL, default="0"),
        _column("version", BIG, default="0"),
        _column("begun_at", BIG, nullable=True),
        _column("settled_at", BIG, nullable=True),
        _column("effect_version", BIG, nullable=True),
        _column("rows_written", BIG, nullable=True),
        sa.ForeignKeyConstraint(
            ["rulebook", "bucket"],
            ["buckets.rulebook", "buckets.bucket"],
        ),
        sa.PrimaryKeyConstraint("number"),
    )
    _index("outbox_by_bucket", "outbox", "rulebook", "bucket", "rule")
    _index(
        "outbox_unfinished",
        "outbox",
        "rulebook",
        "state",
        "number",
        where="state NOT IN ('done', 'skipped', 'redriven')",
    )
    _index(
        "outbox_by_effect",
        "outbox",
        "rulebook",
        "target",
        "effect_version",
        where="effect_version IS NOT NULL",
    )
    op.create_table(
        "begun",
        _column("rulebook", TEXT),
        _column("running", TEXT),
        sa.PrimaryKeyConstraint("rulebook"),
    )
    op.create_table(
        "suspects",
        _column("rulebook", TEXT),
        _column("kind", TEXT),
        _column("subject", TEXT),
        _column("text", TEXT),
        _column("part", TEXT),
        _column("item", TEXT),
        _column("told", TEXT),
        _column("deaths", SMALL),
        _column("overruns", SMALL),
        _column("ends", SMALL),
        _column("reason", TEXT),
        _column("at", BIG),
        sa.PrimaryKeyConstraint("rulebook", "kind", "subject", "text", "part"),
    )


def _arrivals() -> None:
    op.create_table(
        "signals",
        _column("rulebook", TEXT),
        _column("namespace", TEXT),
        _column("id", TEXT),
        _column("event", TEXT),
        _column("fields", TEXT),
        _column("received_at", BIG),
        _column("depth", SMALL),
        _column("instant", BIG, nullable=True),
        _column("bucket", BIG, nullable=True),
        _column("entry", BIG, nullable=True),
        _column("ordinal", SMALL, nullable=True),
        sa.ForeignKeyConstraint(
            ["rulebook", "bucket"],
            ["buckets.rulebook", "buckets.bucket"],
        ),
        sa.PrimaryKeyConstraint("rulebook", "namespace", "id"),
    )
    _index("signals_by_bucket", "signals", "rulebook", "bucket", where="bucket IS NOT NULL")
    _index("signals_by_entry", "signals", "entry", "ordinal", unique=True)
    _index(
        "signals_unplaced",
        "signals",
        "rulebook",
        "received_at",
        "id",
        "namespace",
        where="bucket IS NULL",
    )
    _index("signals_unplaced_by_event", "signals", "rulebook", "event", where="bucket IS NULL")
    op.create_table(
        "rejected",
        _column("rulebook", TEXT),
        _column("bucket", BIG),
        _column("ordinal", SMALL),
        _column("event", TEXT),
        _column("source", TEXT),
        _column("reason", TEXT),
        _column("fields", TEXT),
        _column("details", TEXT, nullable=True),
        sa.ForeignKeyConstraint(
            ["rulebook", "bucket"],
            ["buckets.rulebook", "buckets.bucket"],
        ),
        sa.PrimaryKeyConstraint("rulebook", "bucket", "ordinal"),
    )
    op.create_table(
        "controls",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        _column("rulebook", TEXT),
        _column("kind", TEXT),
        _column("subject", TEXT),
        _column("version", BIG, nullable=True),
        _column("option", TEXT, nullable=True),
        _column("asked_at", BIG),
        _column("bucket", BIG, nullable=True),
        _column("answer", TEXT, nullable=True),
        _column("asked_by", TEXT, nullable=True),
        sa.ForeignKeyConstraint(
            ["rulebook", "bucket"],
            ["buckets.rulebook", "buckets.bucket"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    _index("controls_by_bucket", "controls", "rulebook", "bucket", where="bucket IS NOT NULL")
    _index("controls_by_time", "controls", "rulebook", "asked_at", "id")
    _index(
        "controls_pending", "controls", "rulebook", "id", where="bucket IS NULL AND answer IS NULL"
    )
