"""The durable state of a rulebook as the engine needs it, as protocols: `engine.store` implements
them on a database, tests in memory.

Every method is one transaction. What writes for an engine does so under its lease: it raises
`EngineError('lease-lost')`, and writes nothing, once the lease has another epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tidegate.engine.core.entries import Control, Entry, Outcome
from tidegate.engine.core.state import State, StoredBucket
from tidegate.engine.core.state_parts import FilePart, Shelf
from tidegate.engine.core.suspect import Strikes, Suspect
from tidegate.engine.core.values import Firings, Signal
from tidegate.rules.model import Settings


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What waits in the store for a plan. `controls`: whether operators asked for something.
    `first_received`, `last_received`: when the first and the last unplaced signal came."""

    controls: bool = False
    first_received: int | None = None
    last_received: int | None = None


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Signals that no bucket has claimed, by (received_at, id). `left_out`: when the next one after
    them was received. A limit leaves it to a later bucket."""

    signals: tuple[Signal, ...] = ()
    left_out: int | None = None


class Buckets(Protocol):
    """The state between two buckets, and the step from one to the next."""

    def load(self, *, apart: bool = False) -> State:
        """The state after the last bucket; an empty one before the first. `apart`: what is cut by
        key and lies in files is left there (`FilePart`), for executors. Raises EngineError
        `state-file`, OutageError."""
        ...

    def shelf(self, state_path: str | None, bucket: int) -> Shelf | None:
        """Where the state files of a bucket are, for one try to take it; None: this store has no
        files."""
        ...

    def give_up(self, bucket: int, shelf: Shelf) -> None:
        """Delete the files of a try that has ended, unless the bucket is committed."""
        ...

    def commit(self, taken: StoredBucket) -> tuple[Entry, ...]:
        """Everything of a bucket in one transaction. Places the signals, stores cursors, W,
        plan, carried instances, firings, and entries; returns the entries with their numbers, in
        their order. `EngineError('bucket-order')` unless the bucket is the one after the last,
        `'signal-placed'` if a signal is in another bucket already; nothing is written then."""
        ...

    def compact(self, state_path: str | None, now: int) -> dict[str, FilePart]:
        """Put the parts of small state files together in one file, if there are many such files.
        Returns the parts that have moved, by name, and where they lie now. The rest of what is
        stored stays as it is. Raises EngineError `state-file`, OutageError (G26)."""
        ...

    def acted(self, bucket: int, seconds: float) -> None:
        """How long it took until every entry of a bucket had been tried."""
        ...

    def version_at(self, table: str, instant: int) -> int | None:
        """The last version of a table at an instant, by the commits that buckets have placed. None
        if these do not reach back so far."""
        ...


class Signals(Protocol):
    """Explicit occurrences, until a bucket claims them (G4)."""

    def arrivals(self, events: Collection[str]) -> Arrivals:
        """What waits for a plan, with the signals of these event types. An idle engine asks only
        this: one query, which also checks the lease."""
        ...

    def unplaced(self, events: Collection[str], watermark: int, limit: int) -> Unplaced:
        """The first `limit` signals of these event types, and those in the same cell of the grid as
        the last one: a cell belongs to one bucket (G4). Signals received up to `watermark`, the
        last bucket's, stand just after it."""
        ...

    def tell(self, signals: Sequence[Signal]) -> None:
        """Insert signals of the engine's own. Those that are there already stay."""
        ...


class Controls(Protocol):
    """What operators ask for (G24)."""

    def pending(self) -> tuple[Control, ...]:
        """The controls that are neither carried out nor answered, oldest first."""
        ...

    def answer(self, control: int, text: str) -> None:
        """Store what came of a control that no bucket carries out."""
        ...


class Outbox(Protocol):
    """The entries that buckets made, until they are done (G16, G17)."""

    def open_entries(self) -> tuple[Entry, ...]:
        """Entries that are pending or held, and dead ones whose alternative is still due, by
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
        """Store outcomes with all that they bring (`Outcome`), in one transaction. Returns the
        successors with their numbers. An entry that is done, skipped or redriven already stays as
        it is. Raises `EngineError('signal-conflict')`; nothing is written then."""
        ...

    def do_otherwise(self, entry: Entry, made: Sequence[Entry]) -> tuple[Entry, ...]:
        """Store the entries of an alternative, for the firings of `entry` that have had none yet
        (G23). Returns the stored entries."""
        ...

    def dead_in_a_row(self, entry: Entry, limit: int) -> int:
        """How many entries of an entry's queue have died, `limit` at most, since one was done."""
        ...


class Damping(Protocol):
    """The memory of damping (`engine.core.damping_memory`)."""

    def remembered(self, rule: str, wanted: pa.Table) -> pa.Table:
        """The rows `wanted` of a rule that exist."""
        ...

    def count(self, rule: str, kind: int, instant: int) -> int:
        """How many rows of a kind a rule has that expire after an instant."""
        ...


class Suspects(Protocol):
    """The rulebook's texts that Spark runs now, and those that have ended Spark (G13)."""

    def begin(self, running: Sequence[Suspect]) -> None:
        """Store what Spark runs now, before it runs. The record outlives the process. A crash of
        the machine may lose it."""
        ...

    def begun(self) -> tuple[Suspect, ...]:
        """The texts of the last `begin`."""
        ...

    def strike(self, strikes: Sequence[Strikes], running: Sequence[Suspect]) -> None:
        """Store the strikes of suspects, and what still runs."""
        ...

    def strikes(self) -> tuple[Strikes, ...]:
        """The strikes of all suspects."""
        ...

    def forgive(self, known: Collection[Suspect]) -> None:
        """Delete the strikes of suspects."""
        ...


class Retention(Protocol):
    """Deletes what is too old (`engine.store.retention`)."""

    def remove_files(self, settings: Settings, now: int) -> int:
        """Delete some of the state files that nothing points to any more, as the settings say.
        Returns how many (G26)."""
        ...

    def remove_lost_files(self, settings: Settings, now: int) -> int:
        """The same of files that nothing has ever pointed to. It looks at all files."""
        ...

    def purge(self, firings_before: int, history_before: int, rows_max: int) -> int:
        """Delete about `rows_max` rows at most, in one short transaction. Returns how many. Call it
        again while it returns `rows_max` (G13)."""
        ...


class Ledger(Protocol):
    """The state of one rulebook, for the engine that holds its lease (`engine.store.lease`)."""

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
