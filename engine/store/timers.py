"""Timers in the carried state: how many, and the tables with the first ones."""

from __future__ import annotations

import pyarrow as pa
import sqlalchemy as sa

from tidegate.engine.store.blobs import table_from_bytes
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.tables import activations, carried

FirstTimers = tuple[dict[str, int], list[tuple[str, pa.Table]]]


class Timers(Bound):
    """The timers of one rulebook."""

    def first_parts(self, limit: int) -> FirstTimers:
        """When each rule was activated; and the carried tables, by name, whose timers are due
        first."""
        a, c = activations.c, carried.c
        active = sa.select(a.rule, a.instant).where(a.rulebook == self.rulebook)
        query = sa.select(c.name, c.arrow).where(c.rulebook == self.rulebook, c.timers > 0)
        with self.database.read() as connection:
            rows = connection.execute(query.order_by(c.due, c.name).limit(limit)).all()
            instants = {row.rule: row.instant for row in connection.execute(active)}
        return instants, [(row.name, table_from_bytes(row.arrow)) for row in rows]


def count(connection: sa.Connection, rulebook: str) -> int:
    """How many timers wait."""
    c = carried.c
    query = sa.select(sa.func.coalesce(sa.func.sum(c.timers), 0)).where(c.rulebook == rulebook)
    return int(connection.execute(query).scalar_one())
