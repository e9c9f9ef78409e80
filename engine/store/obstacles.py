"""What stands in the way of a rulebook's rules (G13)."""

from __future__ import annotations

import sqlalchemy as sa

from tidegate.engine.core.entries import Entry
from tidegate.engine.core.state import Parked
from tidegate.engine.store import outbox
from tidegate.engine.store import tables as t


def obstacles(connection: sa.Connection, rulebook: str) -> tuple[Entry | Parked, ...]:
    """Parked rules, and the first entries that are pending, held or dead."""
    p = t.parked.c
    parked = sa.select(p.rule, p.reason, p.hint, p.instant).where(p.rulebook == rulebook)
    return (
        *(Parked(*row) for row in connection.execute(parked.order_by(p.rule))),
        *outbox.unfinished(connection, rulebook),
    )
