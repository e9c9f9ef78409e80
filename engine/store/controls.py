"""What operators ask for, kept until a plan carries it out (G24)."""

from __future__ import annotations

import sqlalchemy as sa

from engine.store.database import server_now
from engine.store.tables import controls
from engine.values import Control


def add(
    connection: sa.Connection, rulebook: str, kind: str, subject: str, version: int | None
) -> None:
    """Ask for something."""
    asked_at = server_now(connection)
    row = {"rulebook": rulebook, "kind": kind, "subject": subject, "version": version}
    connection.execute(sa.insert(controls).values(asked_at=asked_at, **row))


def pending(connection: sa.Connection, rulebook: str) -> tuple[Control, ...]:
    """What no bucket has carried out yet, in the order in which it was asked for."""
    c = controls.c
    query = sa.select(c.id, c.kind, c.subject, c.version)
    query = query.where(c.rulebook == rulebook, c.bucket.is_(None)).order_by(c.id)
    return tuple(Control(*row) for row in connection.execute(query))
