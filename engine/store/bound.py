"""The base of the parts of a ledger: bound to a database, a rulebook and a lease's epoch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from tidegate.engine.store.database import Database
from tidegate.engine.store.tables import leases
from tidegate.rules.errors import EngineError


@dataclass(frozen=True, slots=True)
class Bound:
    """A part of a rulebook's state. Each of its methods is one transaction. `epoch`: of the
    engine's lease, 0 for who only reads and asks."""

    database: Database
    rulebook: str
    epoch: int = 0

    @contextmanager
    def leased(self, *, durable: bool = True) -> Iterator[sa.Connection]:
        """A transaction that writes under the lease. Nobody else takes the lease meanwhile."""
        with self.database.write(durable=durable) as connection:
            self.check_lease(connection)
            yield connection

    def check_lease(self, connection: sa.Connection, *, until_commit: bool = True) -> None:
        """Raise EngineError `lease-lost` unless the lease has this epoch. `until_commit`: the lease
        is locked until the transaction ends."""
        query = sa.select(leases.c.epoch, leases.c.holder).where(leases.c.rulebook == self.rulebook)
        found = connection.execute(query.with_for_update() if until_commit else query)
        row = found.one_or_none()
        if row is None or row.epoch != self.epoch:
            raise self.lost(row.holder if row is not None else "nobody")

    def lost(self, holder: str) -> EngineError:
        """The error where `holder` has the lease now."""
        return EngineError(
            "lease-lost",
            f"rulebook {self.rulebook!r} is run by {holder} now; this engine's epoch {self.epoch} "
            "is over",
            "nothing of this bucket was written; let the other engine go on",
        )
