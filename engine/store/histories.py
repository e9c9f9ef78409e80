"""The histories whose markers a store knows: its own, and those of other stores by id (G20)."""

from __future__ import annotations

import uuid
from collections.abc import Collection

import sqlalchemy as sa

from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import server_now, upsert
from tidegate.engine.store.holder import is_dead
from tidegate.engine.store.outbox import OPEN, SKIPPED
from tidegate.rules.errors import EngineError


class Histories(Bound):
    """The known histories of one rulebook."""

    def stores(self) -> frozenset[str]:
        """Ids of stores, other than its own, whose markers are known."""
        query = sa.select(t.known_stores.c.store_id).filter_by(rulebook=self.rulebook)
        with self.database.read() as connection:
            return frozenset(connection.execute(query).scalars())

    def target_version(self, table: str) -> int | None:
        """The target's latest version before the last entry for it was stored."""
        c = t.outbox.c
        query = sa.select(sa.func.max(c.target_version))
        query = query.where(c.rulebook == self.rulebook, c.target == table)
        with self.database.read() as connection:
            version: int | None = connection.execute(query).scalar_one()
        return version


def adopt(connection: sa.Connection, rulebook: str, ids: Collection[str]) -> str:
    """Give the store a new id, and return it. The rulebook knows the old id and `ids` from now on.

    EngineError `lease-held` while an engine runs another rulebook of the store.
    """
    _refuse_running(connection, rulebook)
    old = connection.execute(sa.select(t.meta.c.store_id)).scalar_one()
    new = uuid.uuid4().hex
    connection.execute(sa.update(t.meta).values(store_id=new))
    row = {"rulebook": rulebook, "known_at": server_now(connection)}
    upsert(connection, t.known_stores, [{**row, "store_id": one} for one in {old, *ids}])
    return new


def pass_signals(connection: sa.Connection, rulebook: str) -> tuple[int, int]:
    """Drop the waiting signals, and skip the entries that would raise some. Returns how many of
    each.

    The signals are placed in the last bucket, which is over. So a client that repeats one still
    hears that it is known.
    """
    o, s, b = t.outbox.c, t.signals.c, t.buckets.c
    raising = (o.rulebook == rulebook) & (o.kind == "signal") & o.state.in_(OPEN)
    skipped = sa.update(t.outbox).where(raising).values(state=SKIPPED, error="passed over: adopt")
    entries = connection.execute(skipped).rowcount
    last = connection.execute(t.of_last_bucket(rulebook, b.bucket, b.watermark)).one_or_none()
    if last is None:
        return 0, entries
    waiting = sa.update(t.signals).where((s.rulebook == rulebook) & s.bucket.is_(None))
    placed = connection.execute(waiting.values(bucket=last.bucket, instant=last.watermark))
    return placed.rowcount, entries


def _refuse_running(connection: sa.Connection, rulebook: str) -> None:
    """Raise EngineError `lease-held` if an engine runs another rulebook: it has read the old id."""
    c = t.leases.c
    others = sa.select(c.rulebook, c.holder).where(
        c.rulebook != rulebook, c.expires_at > server_now(connection)
    )
    for row in connection.execute(others):
        if not is_dead(row.holder):
            raise EngineError(
                "lease-held",
                f"rulebook {row.rulebook!r} of the same store is run by {row.holder} "
                "(machine/process)",
                "stop that engine: the store gets a new id, which engines read when they start",
            )
