"""What `tidegate status` shows."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from engine.store import plain
from engine.store import tables as t
from engine.store.database import server_now
from engine.store.outbox import DEAD, DONE, PENDING

ENTRIES_SHOWN_MAX = 100


def rulebook_status(connection: sa.Connection, rulebook: str) -> dict[str, Any]:
    """Where a rulebook's engine stands. Times are ISO 8601, UTC; lists hold mappings or names.

    `stopped` says why the engine stopped, None if it did not. `entries` are the first 100 that are
    not done; a pending one that has an error has failed and will be tried again.
    `adjusted_commits` are those whose instant had to be moved (G1).
    """
    b = t.buckets.c
    last = connection.execute(
        sa.select(b.bucket, b.watermark)
        .where(b.rulebook == rulebook)
        .order_by(b.bucket.desc())
        .limit(1)
    ).one_or_none()
    adjusted = sa.select(sa.func.coalesce(sa.func.sum(b.adjusted_commits), 0))
    unplaced = (t.signals.c.rulebook == rulebook) & t.signals.c.bucket.is_(None)
    return {
        "rulebook": rulebook,
        "store_id": connection.execute(sa.select(t.meta.c.store_id)).scalar_one(),
        "bucket": last.bucket if last else 0,
        "watermark": plain.instant(last.watermark) if last else None,
        "stopped": _stopped(connection, rulebook),
        **_lease(connection, rulebook),
        "adjusted_commits": connection.execute(adjusted.where(b.rulebook == rulebook)).scalar_one(),
        "unplaced_signals": _count(connection, t.signals, unplaced),
        "rejected_rows": _count(connection, t.rejected, t.rejected.c.rulebook == rulebook),
        **_entry_counts(connection, rulebook),
        "active_rules": _active(connection, rulebook),
        "tables": _tables(connection, rulebook),
        "entries": _entries(connection, rulebook),
        "asked_for": _asked_for(connection, rulebook),
    }


def _stopped(connection: sa.Connection, rulebook: str) -> str | None:
    c = t.rulebooks.c
    query = sa.select(c.stopped).where(c.name == rulebook)
    return connection.execute(query).scalar_one_or_none()


def _lease(connection: sa.Connection, rulebook: str) -> dict[str, Any]:
    c = t.leases.c
    query = sa.select(c.holder, c.expires_at).where(c.rulebook == rulebook)
    row = connection.execute(query).one_or_none()
    held = row is not None and row.expires_at > server_now(connection)
    return {
        "lease_holder": row.holder if row is not None and held else None,
        "lease_until": plain.instant(row.expires_at) if row is not None and held else None,
    }


def _entry_counts(connection: sa.Connection, rulebook: str) -> dict[str, int]:
    c = t.outbox.c
    failed = sa.func.coalesce(sa.func.sum(sa.case((c.error.is_not(None), 1), else_=0)), 0)
    query = sa.select(c.state, sa.func.count(), failed).group_by(c.state)
    rows = connection.execute(query.where(c.rulebook == rulebook, c.state != DONE))
    found = {state: (count, failures) for state, count, failures in rows}
    return {
        "entries_pending": found.get(PENDING, (0, 0))[0],
        "entries_failed": found.get(PENDING, (0, 0))[1],
        "entries_dead": found.get(DEAD, (0, 0))[0],
    }


def _active(connection: sa.Connection, rulebook: str) -> list[str]:
    c = t.activations.c
    query = sa.select(c.rule).where(c.rulebook == rulebook)
    return sorted(connection.execute(query).scalars())


def _tables(connection: sa.Connection, rulebook: str) -> list[dict[str, Any]]:
    c = t.cursors.c
    query = sa.select(c.table_name, c.version, c.instant).where(c.rulebook == rulebook)
    return [
        {"table": row.table_name, "version": row.version, "instant": plain.instant(row.instant)}
        for row in connection.execute(query.order_by(c.table_name))
    ]


def _entries(connection: sa.Connection, rulebook: str) -> list[dict[str, Any]]:
    c = t.outbox.c
    query = sa.select(c.number, c.rule, c.bucket, c.kind, c.target, c.state, c.attempts, c.error)
    query = query.where(c.rulebook == rulebook, c.state != DONE).order_by(c.number)
    return [_mapping(row) for row in connection.execute(query.limit(ENTRIES_SHOWN_MAX))]


def _asked_for(connection: sa.Connection, rulebook: str) -> list[dict[str, Any]]:
    c = t.controls.c
    query = sa.select(c.kind, c.subject, c.version)
    query = query.where(c.rulebook == rulebook, c.bucket.is_(None)).order_by(c.id)
    return [_mapping(row) for row in connection.execute(query)]


def _mapping(row: Any) -> dict[str, Any]:
    """A row by column; SQLAlchemy's names are a kind of str that JSON writers refuse."""
    return {str(name): value for name, value in row._mapping.items()}


def _count(connection: sa.Connection, table: sa.Table, where: sa.ColumnElement[bool]) -> int:
    query = sa.select(sa.func.count()).select_from(table).where(where)
    return int(connection.execute(query).scalar_one())
