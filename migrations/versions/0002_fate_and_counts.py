"""Fate of entries, parked rules, known stores; counts and times in columns of their own; firings
found by their ids in sorted runs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from alembic import op

from tidegate.engine.store import id_runs

revision = "0002"
down_revision = "0001"

_BUCKET_COUNTS = ("row_count", "detection_count", "firing_count", "entry_count", "rejected_count")
_STAGES = ("plan", "capture", "detect", "evaluate", "act")


def upgrade() -> None:
    _tables()
    _buckets()
    _firings()
    _outbox()
    _arrivals()


def _number(name: str, kind: type[sa.Integer] = sa.BigInteger) -> sa.Column[int]:
    return sa.Column(name, kind, nullable=False, server_default="0")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _big(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _tables() -> None:
    op.create_table(
        "known_stores",
        _text("rulebook"),
        _text("store_id"),
        _big("known_at"),
        sa.PrimaryKeyConstraint("rulebook", "store_id"),
    )
    op.create_table(
        "parked",
        _text("rulebook"),
        _text("rule"),
        _text("reason"),
        _text("hint"),
        _big("instant"),
        _big("bucket"),
        _big("passed_over"),
        sa.PrimaryKeyConstraint("rulebook", "rule"),
    )
    op.create_table(
        "firing_runs",
        _text("rulebook"),
        _big("run"),
        _big("first_bucket"),
        sa.Column("level", sa.Integer, nullable=False),
        _big("id_count"),
        sa.PrimaryKeyConstraint("rulebook", "run"),
    )
    op.create_table(
        "firing_ids",
        _text("rulebook"),
        _big("run"),
        sa.Column("first_id", sa.LargeBinary, nullable=False),
        sa.Column("ids", sa.LargeBinary, nullable=False),
        sa.Column("places", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("rulebook", "run", "first_id"),
    )


def _buckets() -> None:
    """What the tables still tell of earlier buckets is counted."""
    for name in _BUCKET_COUNTS:
        op.add_column("buckets", _number(name))
    for stage in _STAGES:
        op.add_column("buckets", sa.Column(f"seconds_{stage}", sa.Float))
    same = "WHERE c.rulebook = buckets.rulebook AND c.bucket = buckets.bucket"
    firings = f"(SELECT coalesce(sum(firing_count), 0) FROM firings AS c {same})"  # noqa: S608
    entries = f"(SELECT count(*) FROM outbox AS c {same})"  # noqa: S608
    rejected = f"(SELECT count(*) FROM rejected AS c {same})"  # noqa: S608
    op.execute(
        f"UPDATE buckets SET firing_count = {firings}, entry_count = {entries}, "  # noqa: S608
        f"rejected_count = {rejected}"
    )
    op.create_index("buckets_by_now", "buckets", ["rulebook", "now", "bucket"])
    columns = (*_BUCKET_COUNTS, "adjusted_commits")
    op.create_table(
        "totals", _text("rulebook"), *map(_big, columns), sa.PrimaryKeyConstraint("rulebook")
    )
    sums = ", ".join(f"sum({name})" for name in columns)
    op.execute(
        f"INSERT INTO totals (rulebook, {', '.join(columns)}) "  # noqa: S608
        f"SELECT rulebook, {sums} FROM buckets GROUP BY rulebook"
    )


def _firings() -> None:
    """The table is made anew, its large values last: SQLite reads a row from its begin."""
    made = op.create_table(
        "firings_0002",
        _text("rulebook"),
        _big("bucket"),
        _text("rule"),
        sa.Column("ordinal", sa.Integer, nullable=False),
        sa.Column("firing_count", sa.Integer, nullable=False),
        _big("first_detected_at"),
        _big("last_detected_at"),
        _text("first_id"),
        _text("last_id"),
        sa.Column("firings", sa.LargeBinary, nullable=False),
        sa.Column("relation", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("rulebook", "bucket", "rule"),
        sa.ForeignKeyConstraint(["rulebook", "bucket"], ["buckets.rulebook", "buckets.bucket"]),
    )
    connection = op.get_bind()
    keys = sa.text("SELECT DISTINCT rulebook, bucket FROM firings ORDER BY rulebook, bucket")
    for rulebook, bucket in connection.execute(keys).all():
        ids = _copy_bucket(connection, made, rulebook, bucket)
        id_runs.add(connection, rulebook, bucket, ids)
    op.drop_table("firings")
    op.rename_table("firings_0002", "firings")
    op.create_index("firings_by_rule", "firings", ["rulebook", "rule", "bucket"])
    op.create_index("firings_by_time", "firings", ["rulebook", "last_detected_at", "bucket"])


def _copy_bucket(
    connection: sa.Connection, made: sa.Table, rulebook: str, bucket: int
) -> list[pa.ChunkedArray]:
    """Copy the firings of a bucket with their extents; their ids by rule."""
    query = sa.text(
        "SELECT rule, firing_count, firings, relation FROM firings "
        "WHERE rulebook = :rulebook AND bucket = :bucket ORDER BY rule"
    )
    found = []
    for ordinal, row in enumerate(
        connection.execute(query, {"rulebook": rulebook, "bucket": bucket}).all()
    ):
        fired = pa.ipc.open_stream(pa.py_buffer(row.firings)).read_all()
        times = np.asarray(fired["detected_at"].cast(pa.int64()))
        ids = fired["firing_id"]
        values = {**row._mapping, "rulebook": rulebook, "bucket": bucket, "ordinal": ordinal}
        connection.execute(
            sa.insert(made).values(
                **values,
                first_detected_at=int(times[0]),
                last_detected_at=int(times[-1]),
                first_id=ids[0].as_py().hex(),
                last_id=ids[-1].as_py().hex(),
            )
        )
        found.append(ids)
    return found


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
    op.drop_index("outbox_not_done", "outbox")
    unfinished = "state NOT IN ('done', 'skipped', 'redriven')"
    _partial_index("outbox_unfinished", "outbox", ["rulebook", "state", "number"], unfinished)


def _arrivals() -> None:
    op.add_column("rejected", sa.Column("details", sa.Text))
    _partial_index("signals_by_bucket", "signals", ["rulebook", "bucket"], "bucket IS NOT NULL")
    by_event = ["rulebook", "event"]
    _partial_index("signals_unplaced_by_event", "signals", by_event, "bucket IS NULL")
    op.add_column("controls", sa.Column("option", sa.Text))
    op.add_column("controls", sa.Column("answer", sa.Text))
    _partial_index("controls_by_bucket", "controls", ["rulebook", "bucket"], "bucket IS NOT NULL")
    op.create_index("controls_by_time", "controls", ["rulebook", "asked_at", "id"])
    pending = "bucket IS NULL AND answer IS NULL"
    _partial_index("controls_pending", "controls", ["rulebook", "id"], pending)


def _partial_index(name: str, table: str, columns: list[str], where: str) -> None:
    condition = sa.text(where)
    op.create_index(name, table, columns, sqlite_where=condition, postgresql_where=condition)
