"""For how long Delta keeps the past of a rulebook's tables, as its engine read it last."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict

import sqlalchemy as sa

from tidegate.engine.core.keeping import Keeping
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import server_now, upsert
from tidegate.engine.store.tables import keepings


class Keepings(Bound):
    """The keepings of one rulebook. Implements `engine.core.ledger.Keepings`."""

    def tell(self, found: Collection[Keeping]) -> None:
        """Store what is so now; tables that are not in it are forgotten."""
        with self.leased(durable=False) as connection:
            at = server_now(connection)
            mine = keepings.c.rulebook == self.rulebook
            names = [one.table for one in found]
            connection.execute(sa.delete(keepings).where(mine, keepings.c.table_name.not_in(names)))
            rows = []
            for one in found:
                values = asdict(one)
                name = values.pop("table")
                row = {"rulebook": self.rulebook, "table_name": name, "told_at": at}
                rows.append({**row, **values})
            upsert(connection, keepings, rows)

    def known(self) -> dict[str, Keeping]:
        """The keeping of each table, by name; none before the first engine has looked."""
        c = keepings.c
        query = sa.select(c.table_name, c.log_micros, c.files_micros, c.oldest, c.head)
        query = query.where(c.rulebook == self.rulebook).order_by(c.table_name)
        with self.database.read() as connection:
            return {row.table_name: Keeping(*row) for row in connection.execute(query)}
