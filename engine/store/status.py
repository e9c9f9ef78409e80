"""What `tidegate status` shows."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from tidegate.engine.entries import Fate
from tidegate.engine.store import outbox, plain, rejected
from tidegate.engine.store import tables as t
from tidegate.engine.store.database import server_now
from tidegate.engine.store.outbox import DEAD, HELD, PENDING
from tidegate.engine.store.signals import unplaced_by_event

NEWEST_SHOWN = 10


def rulebook_status(
    connection: sa.Connection, rulebook: str, declared: Collection[str] | None = None
) -> dict[str, Any]:
    """Where a rulebook's engine stands, without a value of the user's tables. Times are ISO 8601,
    UTC; lists hold mappings or names.

    `stopped` says why the engine stopped, None if it did not. `adjusted_commits` are those whose
    instant had to be moved (G1); they, `firings` and `rejected_rows` count what is forgotten, too.
    `entries` are, of each state, the first that are not finished: a pending one that has an error
    has failed and will be tried again; `commands` are the ways past a held or a dead one. A signal
    whose event is not among the `declared` ones, if they are given, waits for a rulebook that
    declares it. `answered` is what came of what was asked for last: a bucket carried it out, or it
    was answered.
    """
    b = t.buckets.c
    last = connection.execute(
        sa.select(b.bucket, b.watermark)
        .where(b.rulebook == rulebook)
        .order_by(b.bucket.desc())
        .limit(1)
    ).one_or_none()
    unplaced = unplaced_by_event(connection, rulebook)
    return {
        "rulebook": rulebook,
        "store_id": connection.execute(sa.select(t.meta.c.store_id)).scalar_one(),
        "bucket": last.bucket if last else 0,
        "watermark": plain.instant(last.watermark) if last else None,
        "stopped": _stopped(connection, rulebook),
        **_lease(connection, rulebook),
        **_totals(connection, rulebook),
        "unplaced_signals": sum(unplaced.values()),
        **_entry_counts(connection, rulebook),
        "active_rules": _active(connection, rulebook),
        "parked_rules": _parked(connection, rulebook),
        "tables": _tables(connection, rulebook),
        "entries": _entries(connection, rulebook),
        "rejected": rejected.newest(connection, rulebook, NEWEST_SHOWN, whole=False),
        "undeclared_signals": [
            {"event": event, "signals": count}
            for event, count in sorted(unplaced.items())
            if declared is not None and event not in declared
        ],
        "asked_for": _asked_for(connection, rulebook),
        "answered": _answered(connection, rulebook),
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


def _totals(connection: sa.Connection, rulebook: str) -> dict[str, int]:
    c = t.totals.c
    query = sa.select(c.adjusted_commits, c.firing_count, c.rejected_count)
    row = connection.execute(query.where(c.rulebook == rulebook)).one_or_none()
    names = ("adjusted_commits", "firings", "rejected_rows")
    return dict(zip(names, row or (0, 0, 0), strict=True))


def _entry_counts(connection: sa.Connection, rulebook: str) -> dict[str, int]:
    c = t.outbox.c
    count = sa.func.count().label("entries")
    query = sa.select(c.state, count).where(c.rulebook == rulebook, t.UNFINISHED)
    rows = connection.execute(query.group_by(c.state))
    found = {row.state: row.entries for row in rows}
    failed = sa.select(sa.func.count()).where(c.rulebook == rulebook, t.UNFINISHED)
    failed = failed.where(c.state == PENDING, c.error.is_not(None))
    return {
        "entries_pending": found.get(PENDING, 0),
        "entries_failed": connection.execute(failed).scalar_one(),
        "entries_held": found.get(HELD, 0),
        "entries_dead": found.get(DEAD, 0),
    }


def _parked(connection: sa.Connection, rulebook: str) -> list[dict[str, Any]]:
    c = t.parked.c
    query = sa.select(t.parked).where(c.rulebook == rulebook).order_by(c.rule)
    return [
        {
            "rule": row.rule,
            "reason": row.reason,
            "hint": row.hint,
            "since": plain.instant(row.instant),
            "passed_over": row.passed_over,
            "commands": [f"tidegate enable {row.rule}"],
        }
        for row in connection.execute(query)
    ]


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
    names = ("number", "rule", "bucket", "kind", "target", "state", "attempts", "fate", "error")
    return [
        {
            **{name: getattr(entry, name) for name in names},
            "commands": entry_commands(entry.number, entry.state, entry.fate),
        }
        for entry in outbox.unfinished(connection, rulebook)
    ]


def entry_commands(number: int, state: str, fate: str | None) -> list[str]:
    """The ways past an entry that goes on by itself no more."""
    if state not in (HELD, DEAD):
        return []
    if fate == Fate.UNKNOWN.value:  # it may not be possible to seal it
        return [f"tidegate redrive {number} --may-double", f"tidegate skip {number} --unsealed"]
    return [f"tidegate redrive {number}", f"tidegate skip {number}"]


def _asked_for(connection: sa.Connection, rulebook: str) -> list[dict[str, Any]]:
    c = t.controls.c
    query = sa.select(c.kind, c.subject, c.version, c.option)
    query = query.where(c.rulebook == rulebook, c.bucket.is_(None), c.answer.is_(None))
    return [_mapping(row) for row in connection.execute(query.order_by(c.id))]


def _answered(connection: sa.Connection, rulebook: str) -> list[dict[str, Any]]:
    c = t.controls.c
    query = sa.select(c.kind, c.subject, c.option, c.asked_at, c.bucket, c.answer)
    query = query.where(c.rulebook == rulebook, c.answer.is_not(None) | c.bucket.is_not(None))
    rows = connection.execute(query.order_by(c.asked_at.desc(), c.id.desc()).limit(NEWEST_SHOWN))
    found = [
        {
            **_mapping(row),
            "asked_at": plain.instant(row.asked_at),
            "answer": row.answer or "done",  # a bucket carried it out
        }
        for row in rows
    ]
    return found[::-1]


def _mapping(row: Any) -> dict[str, Any]:
    """A row by column; SQLAlchemy's names are a kind of str that JSON writers refuse."""
    return {str(name): value for name, value in row._mapping.items()}
