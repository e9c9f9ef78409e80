"""What a store knows of the past of a rulebook: where its commits and signals stood.

Example: version 7 of `orders` was committed at 9:00:00.100 by its log, and a bucket placed it at
9:00:00.205, after the watermark that was there already (G1). A backtest places it there, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import sqlalchemy as sa

from tidegate.engine.core.values import Namespace, Signal
from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound


class Placed(Bound):
    """Where the commits and signals of one rulebook stood."""

    def instants(self, table: str) -> Mapping[int, int]:
        """By version of a table, its instant, as far back as `history_retention_days` says."""
        c = t.commits.c
        query = sa.select(c.version, c.instant)
        query = query.where(c.rulebook == self.rulebook, c.table_name == table)
        with self.database.read() as connection:
            return {row.version: row.instant for row in connection.execute(query)}

    def signals(self, begin: int, end: int) -> list[Signal]:
        """The signals in (begin, end], received at the instants at which buckets placed them."""
        c = t.signals.c
        at = sa.func.coalesce(c.instant, c.received_at)
        query = sa.select(c.id, c.event, c.fields, at.label("at"), c.depth, c.namespace)
        query = query.where(c.rulebook == self.rulebook, at > begin, at <= end).order_by(at, c.id)
        with self.database.read() as connection:
            rows = connection.execute(query).all()
        return [
            Signal(r.id, r.event, json.loads(r.fields), r.at, r.depth, namespace=r.namespace)
            for r in rows
        ]

    def signal_keys(self, after: int) -> frozenset[tuple[str, Namespace]]:
        """The ids of the signals after an instant."""
        c = t.signals.c
        query = sa.select(c.id, c.namespace).where(c.rulebook == self.rulebook)
        at = sa.func.coalesce(c.instant, c.received_at)
        with self.database.read() as connection:
            rows = connection.execute(query.where(at > after)).all()
        return frozenset((row.id, row.namespace) for row in rows)
