"""Timers that are carried: how many, and the parts in which the first ones are."""

from __future__ import annotations

import pyarrow as pa
import sqlalchemy as sa

from tidegate.engine.store.blobs import table_from_bytes
from tidegate.engine.store.tables import activations, carried

FirstTimers = tuple[dict[str, int], list[tuple[str, pa.Table]]]


def count(connection: sa.Connection, rulebook: str) -> int:
    """How many timers wait."""
    c = carried.c
    query = sa.select(sa.func.coalesce(sa.func.sum(c.timers), 0)).where(c.rulebook == rulebook)
    return int(connection.execute(query).scalar_one())


def first_parts(connection: sa.Connection, rulebook: str, limit: int) -> FirstTimers:
    """When each rule was activated; and the parts, by name, with the timers that are due first."""
    a, c = activations.c, carried.c
    active = sa.select(a.rule, a.instant).where(a.rulebook == rulebook)
    query = sa.select(c.name, c.arrow).where(c.rulebook == rulebook, c.timers > 0)
    rows = connection.execute(query.order_by(c.due, c.name).limit(limit))
    return (
        {row.rule: row.instant for row in connection.execute(active)},
        [(row.name, table_from_bytes(row.arrow)) for row in rows],
    )
