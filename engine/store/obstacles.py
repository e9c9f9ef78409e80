"""What stands in the way of a rulebook's rules (G13)."""

from __future__ import annotations

import sqlalchemy as sa

from engine.store import tables as t
from engine.store.outbox import DEAD, DONE, OPEN, to_entry
from engine.values import Entry, Parked

SHOWN_MAX = 100


def obstacles(connection: sa.Connection, rulebook: str) -> tuple[Entry | Parked, ...]:
    """Parked rules, and the first entries that are pending, held or dead."""
    p, c = t.parked.c, t.outbox.c
    parked = sa.select(p.rule, p.reason, p.hint, p.instant).where(p.rulebook == rulebook)
    query = sa.select(t.outbox).where(c.rulebook == rulebook, c.state.in_([*OPEN, DEAD]))
    query = query.where(c.state != DONE)  # said again for SQLite, which then uses the index
    entries = connection.execute(query.order_by(c.number).limit(SHOWN_MAX))
    return (
        *(Parked(*row) for row in connection.execute(parked.order_by(p.rule))),
        *map(to_entry, entries),
    )
