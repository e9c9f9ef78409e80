"""The store: one database with a ledger for each rulebook."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Self

import sqlalchemy as sa

from tidegate.engine.core.entries import Fate
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.values import Signal
from tidegate.engine.store import controls, histories, posts, signals, versions
from tidegate.engine.store import tables as t
from tidegate.engine.store.bound import Bound
from tidegate.engine.store.database import Database
from tidegate.engine.store.ledger import Ledger
from tidegate.engine.store.schema import migrate_schema, open_schema
from tidegate.engine.store.versions import KeptRulebook

_NUMBERS_AT_ONCE = 1_000


def open_store(url: str, *, create: bool) -> SqlStore:
    """Open the store at a database URL; an empty one is made if `create`.

    Raises EngineError `bad-store-url`, `store-driver`, `no-store`, `store-older`, `store-newer`,
    `store-unreachable`, each with its remedy and never with a password.
    """
    database = Database(url)
    try:
        open_schema(database, create=create)
        return SqlStore(database)
    except BaseException:
        database.close()
        raise


def migrate(url: str) -> tuple[str | None, str]:
    """Bring a store's schema to this version, or make it; (version before, version after)."""
    database = Database(url)
    try:
        return migrate_schema(database)
    finally:
        database.close()


class SqlStore:
    """A store on SQLite or PostgreSQL: all that is not of a single rulebook. Every method is one
    transaction, with the errors of a `Ledger`. `id`: random, part of every marker (G20)."""

    def __init__(self, database: Database) -> None:
        self.database = database
        with database.read() as connection:
            self.id = str(connection.execute(sa.select(t.meta.c.store_id)).scalar_one())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def snapshot(self) -> AbstractContextManager[None]:
        """What this thread reads meanwhile is of one state of the store, in one transaction."""
        return self.database.snapshot()

    def wall(self) -> int:
        """The store's clock, microseconds: the database server's, or the machine's."""
        return self.database.wall()

    def of(self, rulebook: str, epoch: int = 0) -> Ledger:
        """The ledger of a rulebook. `epoch`: of the engine's lease, 0 for who has none."""
        return Ledger(self.database, rulebook, epoch)

    def rulebooks(self) -> Mapping[str, KeptRulebook]:
        """The registered rulebooks by name, as they run, or ran last."""
        with self.database.read() as connection:
            return versions.current(connection)

    def version_numbers(self) -> Mapping[str, int]:
        """The numbers of the versions of the registered rulebooks, without their texts."""
        with self.database.read() as connection:
            return versions.numbers(connection)

    def last_entry(self) -> int:
        """The last number of the store's sequence of entries."""
        with self.database.read() as connection:
            return int(connection.execute(sa.select(t.meta.c.last_entry)).scalar_one())

    def app_ids(self, numbers: Iterable[int]) -> Mapping[int, str]:
        """See `engine.core.ports.AppIds`."""
        c, passed = t.outbox.c, Fate.PASSED.value
        found: dict[int, str] = {}
        asked = sorted(set(numbers))
        with self.database.read() as connection:
            for at in range(0, len(asked), _NUMBERS_AT_ONCE):
                some = c.number.in_(asked[at : at + _NUMBERS_AT_ONCE])
                rows = connection.execute(sa.select(c.number, c.app_id, c.fate).where(some))
                found |= {row.number: "" if row.fate == passed else row.app_id for row in rows}
        return found

    def adopt(
        self,
        rulebook: str,
        epoch: int,
        ids: Collection[str],
        resets: Collection[str] = (),
        *,
        pass_signals: bool = False,
    ) -> tuple[int, int]:
        """Give the store a new `id`. The rulebook knows `ids` and the old id from now on, and the
        tables in `resets` are to be reset. `pass_signals`: waiting signals are dropped. Returns how
        many signals were dropped, and how many entries that would raise some were skipped. Raises
        `EngineError('lease-held')` while another rulebook runs, `('lease-lost')`."""
        with Bound(self.database, rulebook, epoch).leased() as connection:
            new = histories.adopt(connection, rulebook, ids)
            for table in resets:
                controls.add(connection, rulebook, "reset", table)
            passed = histories.pass_signals(connection, rulebook) if pass_signals else (0, 0)
            failpoint("adopt.before")
        self.id = new
        return passed

    def raise_everywhere(self, raised: Mapping[str, Signal]) -> bool:
        """Insert a signal into each of these rulebooks, or into none. Returns whether it is new to
        any of them. See `Signals.raise_signal`."""
        with self.database.write() as connection:
            found = [signals.raise_signal(connection, *one) for one in sorted(raised.items())]
        return any(found)

    def raise_posted(
        self, requests: Sequence[posts.Posted], received_at: Sequence[int]
    ) -> list[posts.IdConflict | int]:
        """See `engine.store.posts.insert`."""
        while True:
            with suppress(posts.RacedError), self.database.write() as connection:
                found = posts.insert(connection, requests, received_at)
                failpoint("posted.before")
                return found
