"""The store: every method one transaction on the database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import pyarrow as pa
import sqlalchemy as sa

from tidegate.engine.core.entries import Control, Entry, Outcome
from tidegate.engine.core.failpoints import failpoint
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.core.ports import Arrivals, Unplaced
from tidegate.engine.core.state import Parked, State, Taken
from tidegate.engine.core.suspect import Strikes, Suspect
from tidegate.engine.core.values import Firings, Signal
from tidegate.engine.store import (
    arrivals,
    buckets,
    controls,
    damping,
    disabling,
    lease,
    misfires,
    obstacles,
    outbox,
    parking,
    posts,
    retention,
    signals,
    suspects,
    versions,
)
from tidegate.engine.store import histories as known
from tidegate.engine.store import tables as t
from tidegate.engine.store.database import Database
from tidegate.engine.store.schema import migrate_schema, open_schema
from tidegate.engine.store.versions import KeptRulebook
from tidegate.engine.store.views import Shown


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


class SqlStore(Shown):
    """Implements `engine.core.ports.Store` (see there) on SQLite and PostgreSQL, and answers
    commands.

    Every method may raise EngineError `store-unreachable`, `store-busy`, `store-unusable` or
    `store-failed`; nothing of it is written then.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        with database.read() as connection:
            self._id = str(connection.execute(sa.select(t.meta.c.store_id)).scalar_one())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    @property
    def id(self) -> str:
        return self._id

    def wall(self) -> int:
        """The store's clock, microseconds: the database server's, or the machine's."""
        return self._database.wall()

    # -- lease ----------------------------------------------------------------------------------

    def acquire(self, rulebook: str, holder: str, seconds: int) -> int:
        with self._database.write() as connection:
            epoch = lease.acquire(connection, rulebook, holder, seconds)
            failpoint("lease.acquired")
        return epoch

    def renew(
        self, rulebook: str, epoch: int, seconds: int, activity: Activity | None = None
    ) -> None:
        with self._database.write() as connection:
            lease.renew(connection, rulebook, epoch, seconds, activity)
            failpoint("lease.renewed")

    def say(self, rulebook: str, epoch: int, activity: Activity) -> None:
        with self._database.write(durable=False) as connection:
            lease.say(connection, rulebook, epoch, activity)

    def check_lease(self, rulebook: str, epoch: int) -> None:
        with self._database.read() as connection:
            lease.check(connection, rulebook, epoch, until_commit=False)

    def release(self, rulebook: str, epoch: int) -> None:
        with self._database.write() as connection:
            lease.release(connection, rulebook, epoch)

    # -- rulebooks and controls -----------------------------------------------------------------

    def register(
        self,
        rulebook: str,
        text: str,
        file: str | None,
        added: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> int:
        """Say that a rulebook runs, or is to run; the number of its version. Without `added` the
        rules beside its text stay as they are kept. `files`: those of its scripts."""
        with self._database.write() as connection:
            if added is None:
                kept = versions.current(connection).get(rulebook)
                added = kept.added if kept is not None else {}
            given = KeptRulebook(text, file, added, files=files or {})
            number = versions.register(connection, rulebook, given)
            failpoint("register.before")
        return number

    def propose(self, rulebook: str, kept: KeptRulebook, after: int | None = None) -> int | None:
        """Ask the engine to take over another version of a rulebook; its number, or None where the
        newest is not the version `after`."""
        with self._database.write() as connection:
            return versions.propose(connection, rulebook, kept, after)

    def newest(self, rulebook: str) -> KeptRulebook:
        """The version that was asked for last, or else runs."""
        with self._database.read() as connection:
            return versions.newest(connection, rulebook)

    def version(self, rulebook: str, number: int) -> KeptRulebook | None:
        """One of a rulebook's versions."""
        with self._database.read() as connection:
            return versions.version(connection, rulebook, number)

    def rulebooks(self) -> Mapping[str, KeptRulebook]:
        """The registered rulebooks by name."""
        with self._database.read() as connection:
            return versions.current(connection)

    def introduce(self, rulebook: str, kept: KeptRulebook) -> None:
        """Keep a rulebook that the store does not know yet, so that it can say why it did not
        start; one that it knows stays as it was."""
        with self._database.write() as connection:
            versions.introduce(connection, rulebook, kept)

    def set_stopped(self, rulebook: str, epoch: int, reason: str | None) -> None:
        """Keep why the engine stopped (G7); None once it runs again. Only who has the lease, or had
        it last, may say so: `EngineError('lease-lost')`."""
        with self._database.write() as connection:
            lease.check(connection, rulebook, epoch)
            named = t.rulebooks.c.name == rulebook
            connection.execute(sa.update(t.rulebooks).where(named).values(stopped=reason))

    def ask(
        self,
        rulebook: str,
        kind: str,
        subject: str,
        version: int | None = None,
        option: str | None = None,
    ) -> None:
        """Ask the engine for something (`engine.core.values.Control`)."""
        with self._database.write() as connection:
            controls.add(connection, rulebook, kind, subject, version, option)

    def ask_each(
        self, rulebook: str, kind: str, subjects: Iterable[str], option: str | None
    ) -> None:
        """Ask for the same of several subjects at once."""
        with self._database.write() as connection:
            for subject in subjects:
                controls.add(connection, rulebook, kind, subject, option=option)

    def note(self, rulebook: str, epoch: int, kind: str, subject: str, text: str) -> None:
        """Keep what came of something that was asked for elsewhere than in the store."""
        with self._database.write() as connection:
            lease.check(connection, rulebook, epoch)
            controls.add(connection, rulebook, kind, subject, answer=text)

    def answer(self, rulebook: str, epoch: int, control: int, text: str) -> None:
        with self._database.write() as connection:
            lease.check(connection, rulebook, epoch)
            controls.answer(connection, rulebook, control, text)
            failpoint("answer.before")

    def pending_controls(self, rulebook: str) -> tuple[Control, ...]:
        with self._database.read() as connection:
            return controls.pending(connection, rulebook)

    def arrivals(self, rulebook: str, epoch: int, events: Collection[str]) -> Arrivals:
        with self._database.read() as connection:
            return arrivals.find(connection, rulebook, epoch, events)

    # -- known histories (G20) ------------------------------------------------------------------

    def known_stores(self, rulebook: str) -> frozenset[str]:
        """Ids of stores, other than its own, whose markers of a rulebook are known."""
        with self._database.read() as connection:
            return known.stores(connection, rulebook)

    def app_ids(self, numbers: Iterable[int]) -> Mapping[int, str]:
        """See `engine.store.histories`."""
        with self._database.read() as connection:
            return known.app_ids(connection, numbers)

    def target_version(self, rulebook: str, table: str) -> int | None:
        """See `engine.store.histories`."""
        with self._database.read() as connection:
            return known.target_version(connection, rulebook, table)

    def adopt(
        self,
        rulebook: str,
        epoch: int,
        ids: Collection[str],
        resets: Collection[str] = (),
        *,
        pass_signals: bool = False,
    ) -> tuple[int, int]:
        """Take a new id, which is `id` from now on; `ids` and the old one are known. Asks for
        `resets` of tables; returns how many signals, and entries that would raise some, were passed
        over. `EngineError('lease-held')` while another rulebook runs, `('lease-lost')`."""
        with self._database.write() as connection:
            lease.check(connection, rulebook, epoch)
            new = known.adopt(connection, rulebook, ids)
            for table in resets:
                controls.add(connection, rulebook, "reset", table)
            passed = known.pass_signals(connection, rulebook) if pass_signals else (0, 0)
            failpoint("adopt.before")
        self._id = new
        return passed

    # -- buckets --------------------------------------------------------------------------------

    def load(self, rulebook: str) -> State:
        with self._database.read() as connection:
            return buckets.load(connection, rulebook)

    def commit(self, epoch: int, taken: Taken) -> tuple[Entry, ...]:
        plan = taken.plan
        with self._database.write() as connection:
            lease.check(connection, plan.rulebook, epoch)
            failpoint("commit.begun")
            buckets.insert_bucket(connection, taken)
            failpoint("commit.bucket")
            buckets.save_activations(connection, taken)
            misfires.add(connection, plan.rulebook, taken.misfires)
            buckets.save_carried(connection, plan.rulebook, taken.carried)
            failpoint("commit.carried")
            buckets.insert_rejected(connection, plan, taken.rejected)
            parking.enable(connection, plan.rulebook, plan.enabled)
            parking.save(connection, taken)
            disabling.save(connection, taken)
            failpoint("commit.middle")
            asked = (e for e in taken.entries if e.kind == "condition" and e.state != "dead")
            undecided = {entry.rule for entry in asked}
            outbox.insert_firings(connection, plan, taken.firings, undecided)
            failpoint("commit.firings")
            damping.remember(connection, plan.rulebook, taken.memory)
            numbered = outbox.insert_entries(connection, plan.rulebook, plan.bucket, taken.entries)
            failpoint("commit.before")
        failpoint("commit.after")
        return numbered

    # -- signals --------------------------------------------------------------------------------

    def raise_signal(self, rulebook: str, signal: Signal) -> bool:
        with self._database.write() as connection:
            new = signals.raise_signal(connection, rulebook, signal)
            failpoint("signal.raised")
        return new

    def raise_everywhere(self, raised: Mapping[str, Signal]) -> bool:
        """Insert a signal into each of these rulebooks, or into none; whether any of them did not
        have it. See `raise_signal`."""
        with self._database.write() as connection:
            found = [signals.raise_signal(connection, *one) for one in sorted(raised.items())]
        return any(found)

    def raise_posted(
        self, requests: Sequence[posts.Posted], received_at: Sequence[int]
    ) -> list[posts.Taken | int]:
        """See `engine.store.posts.insert`."""
        while True:
            with suppress(posts.RacedError), self._database.write() as connection:
                found = posts.insert(connection, requests, received_at)
                failpoint("posted.before")
                return found

    def unplaced_signals(
        self, rulebook: str, events: Collection[str], watermark: int, limit: int
    ) -> Unplaced:
        with self._database.read() as connection:
            return signals.unplaced(connection, rulebook, events, watermark, limit)

    def unplaced_by_event(self, rulebook: str) -> Mapping[str, int]:
        """See `engine.store.signals.unplaced_by_event`."""
        with self._database.read() as connection:
            return signals.unplaced_by_event(connection, rulebook)

    # -- outbox ---------------------------------------------------------------------------------

    def open_entries(self, rulebook: str) -> tuple[Entry, ...]:
        with self._database.read() as connection:
            return outbox.open_entries(connection, rulebook)

    def one_entry(self, rulebook: str, number: int) -> Entry | None:
        with self._database.read() as connection:
            return outbox.one_entry(connection, rulebook, number)

    def last_entry(self) -> int:
        with self._database.read() as connection:
            return outbox.last_number(connection)

    def entry_firings(self, rulebook: str, bucket: int, rule: str) -> Firings:
        with self._database.read() as connection:
            return outbox.entry_firings(connection, rulebook, bucket, rule)

    def settle(self, rulebook: str, epoch: int, outcomes: Sequence[Outcome]) -> tuple[Entry, ...]:
        with self._database.write() as connection:
            lease.check(connection, rulebook, epoch)
            failpoint("settle.begun")
            found = [outbox.settle(connection, rulebook, outcome) for outcome in outcomes]
            failpoint("settle.before")
        failpoint("settle.after")
        return tuple(successor for successors in found for successor in successors)

    def tell(self, rulebook: str, epoch: int, told: Sequence[Signal]) -> None:
        with self._database.write() as connection:
            lease.check(connection, rulebook, epoch)
            signals.tell(connection, rulebook, told)
            failpoint("tell.before")

    def do_otherwise(
        self, rulebook: str, epoch: int, entry: Entry, made: Sequence[Entry]
    ) -> tuple[Entry, ...]:
        with self._database.write() as connection:
            lease.check(connection, rulebook, epoch)
            stored = outbox.do_otherwise(connection, rulebook, entry, made)
            failpoint("otherwise.stored")
        return stored

    def dead_in_a_row(self, rulebook: str, entry: Entry, limit: int) -> int:
        with self._database.read() as connection:
            return outbox.dead_in_a_row(connection, rulebook, entry, limit)

    def purge(
        self, rulebook: str, epoch: int, firings_before: int, history_before: int, rows_max: int
    ) -> int:
        with self._database.write() as connection:
            lease.check(connection, rulebook, epoch)
            gone = retention.purge(connection, rulebook, firings_before, history_before, rows_max)
            failpoint("purge.before")
        return gone

    def version_at(self, rulebook: str, table: str, instant: int) -> int | None:
        with self._database.read() as connection:
            return buckets.version_at(connection, rulebook, table, instant)

    def remembered(self, rulebook: str, rule: str, wanted: pa.Table) -> pa.Table:
        with self._database.read() as connection:
            return damping.remembered(connection, rulebook, rule, wanted)

    def count_remembered(self, rulebook: str, rule: str, kind: int, instant: int) -> int:
        with self._database.read() as connection:
            return damping.count(connection, rulebook, rule, kind, instant)

    # -- quarantine -----------------------------------------------------------------------------

    def begin(self, rulebook: str, epoch: int, running: Sequence[Suspect]) -> None:
        with self._database.write(durable=False) as connection:
            lease.check(connection, rulebook, epoch)
            suspects.begin(connection, rulebook, running)

    def begun(self, rulebook: str) -> tuple[Suspect, ...]:
        with self._database.read() as connection:
            return suspects.begun(connection, rulebook)

    def strike(
        self, rulebook: str, epoch: int, strikes: Sequence[Strikes], running: Sequence[Suspect]
    ) -> None:
        with self._database.write() as connection:
            lease.check(connection, rulebook, epoch)
            suspects.strike(connection, rulebook, strikes)
            suspects.begin(connection, rulebook, running)
            failpoint("strike.before")

    def strikes(self, rulebook: str) -> tuple[Strikes, ...]:
        with self._database.read() as connection:
            return suspects.strikes(connection, rulebook)

    def forgive(self, rulebook: str, epoch: int, known: Collection[Suspect]) -> None:
        with self._database.write() as connection:
            lease.check(connection, rulebook, epoch)
            suspects.forgive(connection, rulebook, known)

    def acted(self, rulebook: str, epoch: int, bucket: int, seconds: float) -> None:
        with self._database.write() as connection:
            lease.check(connection, rulebook, epoch)
            buckets.set_acted(connection, rulebook, bucket, seconds)
            failpoint("acted.before")

    def obstacles(self, rulebook: str) -> tuple[Entry | Parked, ...]:
        with self._database.read() as connection:
            return obstacles.obstacles(connection, rulebook)
