"""Timers in the carried state: how many, and the tables with the first ones."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import sqlalchemy as sa

from tidegate.engine.store.bound import Bound
from tidegate.engine.store.buckets import carried_tables
from tidegate.engine.store.tables import activations, carried

FirstTimers = tuple[dict[str, int], list[tuple[str, pa.Table]]]


class Timers(Bound):
    """The timers of one rulebook."""

    def activations(self) -> dict[str, int]:
        """When each active rule was activated."""
        query = sa.select(activations.c.rule, activations.c.instant)
        with self.database.read() as connection:
            rows = connection.execute(query.where(activations.c.rulebook == self.rulebook))
            return {row.rule: row.instant for row in rows}

    def first_parts(self, limit: int, nodes: Collection[str] | None = None) -> FirstTimers:
        """When each rule was activated; and the carried tables, by name, whose timers are due
        first. `nodes`: only those of nodes with these digests."""
        c = carried.c
        query = sa.select(c.name, c.arrow, c.file, c.file_row)
        query = query.where(c.rulebook == self.rulebook, c.timers > 0)
        if nodes is not None:
            of_nodes = (c.name.startswith(f"node:{digest}/", autoescape=True) for digest in nodes)
            query = query.where(sa.or_(sa.false(), *of_nodes))
        with self.database.read() as connection:
            rows = connection.execute(query.order_by(c.due, c.name).limit(limit)).all()
        return self.activations(), [*carried_tables(self, rows).items()]


def count(connection: sa.Connection, rulebook: str) -> int:
    """How many timers wait."""
    c = carried.c
    query = sa.select(sa.func.coalesce(sa.func.sum(c.timers), 0)).where(c.rulebook == rulebook)
    return int(connection.execute(query).scalar_one())
