"""The durable state of a rulebook as the engine needs it, as protocols: `engine.store` implements
them on a database, tests in memory.

Every method is one transaction. What writes for an engine does so under its lease: it raises
`EngineError('lease-lost')`, and writes nothing, once the lease has another epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tidegate.engine.core.entries import Control, Entry, Outcome
from tidegate.engine.core.lifecycle import Activity
from tidegate.engine.core.state import State, Taken
from tidegate.engine.core.suspect import Strikes, Suspect
from tidegate.engine.core.values import Firings, Signal


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What waits in the store for a plan: whether operators asked for something, and when the first
    and the last of the unplaced signals were received."""

    controls: bool = False
    first_received: int | None = None
    last_received: int | None = None


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Signals that no bucket has claimed, by (received_at, id). `left_out`: when the first one
    after them was received, which a limit leaves to a later bucket."""

    signals: tuple[Signal, ...] = ()
    left_out: int | None = None


class Lease(Protocol):
    """Who runs the rulebook: one engine at a time (G21)."""

    def acquire(self, holder: str, seconds: int) -> int:
        """Take the lease; returns its new epoch. `EngineError('lease-held')` if another holder's
        lease has not expired, unless that is a process of this machine that has ended."""
        ...

    def renew(self, seconds: int, activity: Activity | None = None) -> None:
        """Extend the lease, and keep when the engine looked last."""
        ...

    def say(self, activity: Activity) -> None:
        """Keep what the engine does just now, for those who ask. It may be lost with the machine.
        Nothing happens if the lease is lost."""
        ...

    def check(self) -> None:
        """Whether the lease is still the engine's; before each entry."""
        ...

    def release(self) -> None:
        """Give the lease back. Nothing happens if it is lost."""
        ...


class Buckets(Protocol):
    """The state between two buckets, and the step from one to the next."""

    def load(self) -> State: ...

    def commit(self, taken: Taken) -> tuple[Entry, ...]:
        """Everything of a bucket in one transaction. Places the signals, stores cursors, W,
        plan, carried instances, firings, and entries; returns the entries with their numbers, in
        their order. `EngineError('bucket-order')` unless the bucket is the one after the last,
        `'signal-placed'` if a signal is in another bucket already; nothing is written then."""
        ...

    def acted(self, bucket: int, seconds: float) -> None:
        """How long it took until every entry of a bucket had been tried."""
        ...

    def version_at(self, table: str, instant: int) -> int | None:
        """The last version of a table at an instant, of the commits that buckets have placed; None
        where they go not so far back."""
        ...


class Signals(Protocol):
    """Explicit occurrences, until a bucket claims them (G4)."""

    def arrivals(self, events: Collection[str]) -> Arrivals:
        """What waits for a plan, of signals those of these event types: all that an idle engine
        asks, in one query. Checks the lease."""
        ...

    def raise_signal(self, signal: Signal) -> bool:
        """Insert a signal, unplaced. False if id and body were there already; `EngineError(
        'signal-conflict')` if the id is there with another body (G4)."""
        ...

    def unplaced(self, events: Collection[str], watermark: int, limit: int) -> Unplaced:
        """The first signals of these event types, at most `limit` and what shares the last one's
        cell of the grid: none of it can stand in another bucket (G4). Those received up to
        `watermark`, the last bucket's, stand just after it."""
        ...

    def tell(self, signals: Sequence[Signal]) -> None:
        """Insert signals of the engine's own; those that are there already stay."""
        ...


class Controls(Protocol):
    """What operators ask for (G24)."""

    def pending(self) -> tuple[Control, ...]:
        """What nobody has carried out or answered, oldest first."""
        ...

    def answer(self, control: int, text: str) -> None:
        """Say what came of a control that no bucket carries out."""
        ...


class Outbox(Protocol):
    """What buckets made due, until it is done (G16, G17)."""

    def open_entries(self) -> tuple[Entry, ...]:
        """Entries that are pending or held, and dead ones whose alternative is still to be done, by
        (place, number)."""
        ...

    def entry(self, number: int) -> Entry | None:
        """An entry by its number, None if there is none (any more)."""
        ...

    def firings(self, bucket: int, rule: str) -> Firings:
        """The stored firings of a rule in a bucket, to run an entry from. `EngineError(
        'firings-gone')` if there are none."""
        ...

    def settle(self, outcomes: Sequence[Outcome]) -> tuple[Entry, ...]:
        """Record outcomes; a done entry's signals (G22), its successors, what is to be remembered
        of its firings and the answer to its control are stored in the same transaction; returns
        the successors with their numbers. An entry that is done, skipped or redriven already stays
        as it is. `EngineError('signal-conflict')`, and nothing is written then."""
        ...

    def do_otherwise(self, entry: Entry, made: Sequence[Entry]) -> tuple[Entry, ...]:
        """Store the entries of an alternative, for those of the entry's firings for which it was
        not done (G23); the stored ones."""
        ...

    def dead_in_a_row(self, entry: Entry, limit: int) -> int:
        """How many entries of an entry's queue have died, `limit` at most, since one was done."""
        ...


class Damping(Protocol):
    """What is remembered of firings that passed (`engine.core.damping_memory`)."""

    def remembered(self, rule: str, wanted: pa.Table) -> pa.Table:
        """Of the rows `wanted` of a rule, those that are there."""
        ...

    def count(self, rule: str, kind: int, instant: int) -> int:
        """How many rows of a kind say something of a rule's firings after an instant."""
        ...


class Suspects(Protocol):
    """What Spark runs of the rulebook's texts, and what has ended it (G13)."""

    def begin(self, running: Sequence[Suspect]) -> None:
        """Store what Spark runs now, before it runs. It outlives the process, and may be lost with
        the machine."""
        ...

    def begun(self) -> tuple[Suspect, ...]:
        """What `begin` was told last."""
        ...

    def strike(self, strikes: Sequence[Strikes], running: Sequence[Suspect]) -> None:
        """Store what suspects have done up to now, and what still runs."""
        ...

    def strikes(self) -> tuple[Strikes, ...]:
        """What all suspects have done."""
        ...

    def forgive(self, known: Collection[Suspect]) -> None:
        """Forget what suspects have done."""
        ...


class Retention(Protocol):
    """What is forgotten, and when: see `engine.store.retention`."""

    def purge(self, firings_before: int, history_before: int, rows_max: int) -> int:
        """Forget, in one short transaction, about `rows_max` rows at most; returns how many: call
        again while it returns `rows_max` (G13)."""
        ...


class Ledger(Protocol):
    """All of one rulebook's state, for the engine whose lease has one epoch."""

    @property
    def lease(self) -> Lease: ...

    @property
    def buckets(self) -> Buckets: ...

    @property
    def signals(self) -> Signals: ...

    @property
    def controls(self) -> Controls: ...

    @property
    def outbox(self) -> Outbox: ...

    @property
    def damping(self) -> Damping: ...

    @property
    def suspects(self) -> Suspects: ...

    @property
    def retention(self) -> Retention: ...


class Store(Protocol):
    """The durable state. One per database."""

    @property
    def id(self) -> str:
        """Random id of this store (G20), part of every marker."""
        ...

    def of(self, rulebook: str, epoch: int = 0) -> Ledger:
        """What is kept of a rulebook; without the epoch of a lease, for who has none."""
        ...

    def last_entry(self) -> int:
        """The last number of the store's sequence of entries."""
        ...

    def app_ids(self, numbers: Collection[int]) -> Mapping[int, str]:
        """The app ids of entries, of all rulebooks, by their numbers, empty for those that another
        history passed; those purged are left out."""
        ...
